"""The rules of MCP, without I/O: a session is fed lines and answers with what must be done.

The contract of both sessions, serving and calling:

1. `receive(line)` takes one message from the peer and returns a list of effects, in order. It never
   waits, writes, or raises for anything a peer can send.
2. The shell does what the effects say and nothing else. `Send` goes to the peer as it is.
3. What we want to say ourselves (an answer, a request, a notification) is asked of the session, which
   returns the bytes. It remembers what it needs to recognise the answer.
"""
