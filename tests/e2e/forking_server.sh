# A server that forks twice and answers from a list: starts in a millisecond, and leaves two processes
# behind that nobody but plait will end, one of them in a session of its own. The tool `pid` tells its
# process id, the tool `never` nothing.
sleep 1000 &
setsid sleep 1000 < /dev/null > /dev/null 2>&1 &
while read -r line; do
    id=${line#*'"id":'}
    id=${id%%[,\}]*}
    case $line in
    *'"method":"initialize"'*)
        result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fork","version":"1"}}' ;;
    *'"method":"tools/list"'*)
        result='{"tools":[{"name":"pid","inputSchema":{"type":"object"}},{"name":"never","inputSchema":{"type":"object"}}]}' ;;
    *'"name":"never"'*) continue ;;
    *'"id":'*) result='{"content":[{"type":"text","text":"'$$'"}]}' ;;
    *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
