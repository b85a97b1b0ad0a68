"""The codes of configuration problems; a code keeps its meaning for ever.

| code | severity | what it says                                                        |
| ---- | -------- | ------------------------------------------------------------------- |
| C100 | error    | the file cannot be read                                             |
| C101 | error    | the file is not JSON                                                |
| C102 | error    | a key is defined twice in one object                                |
| C103 | error    | a value is of the wrong type                                        |
| C104 | error    | a variable without a default is not set                             |
| C105 | error    | a placeholder cannot be read, or is of a kind that we do not know   |
| C106 | either   | an unknown field (ours: error; another program's near miss: warning)|
| C107 | either   | a value is of the right type and still not possible (a transport    |
|      |          | that we do not know: warning, command or url decides; a mode of     |
|      |          | commands that we do not know: warning, the stricter one is taken)   |
| C108 | error    | a server has neither a command nor a url nor a module               |
| C109 | warning  | a server is defined in two places, the later one is used            |
| C110 | error    | a setting is given twice, in two spellings                          |
| C111 | warning  | a field of another program that we know and do not read             |
| C112 | error    | a guard cannot be read, so every call is denied                     |

C100 to C102, and a C103 at the root of a file, end the reading (`ConfigFileError`). Every other error
stops the one server that it names; an error that names no server is in the file's own settings. If it is
in a guard (rules, allowed tools, policy, audit) or in a key that may be meant for one, the first rule of
the result denies everything: what a guard was to stop must not pass because of a typing mistake.
"""

UNREADABLE_FILE = "C100"
NOT_JSON = "C101"
DUPLICATE_KEY = "C102"
WRONG_TYPE = "C103"
UNSET_VARIABLE = "C104"
BAD_PLACEHOLDER = "C105"
UNKNOWN_FIELD = "C106"
IMPOSSIBLE_VALUE = "C107"
NO_TRANSPORT = "C108"
DEFINED_TWICE = "C109"
TWO_SPELLINGS = "C110"
NOT_READ = "C111"
UNGUARDED = "C112"
