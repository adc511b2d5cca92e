# Runs redis-server for a test process. Arguments: the folder, then the command line.
#
# A word on stdin says how it is to end (`stop`: orderly, `crash`: at once). When stdin closes instead, whoever
# started this is gone, however it died: then the server goes, and the folder with it.
folder=$1
shift
"$@" &
server=$!
# Only the server may hold the pipe that its log goes through: whoever reads it sees when the server has died.
exec >/dev/null
read -r how || how=leave
case $how in
stop) kill -TERM "$server" ;;
*) kill -KILL "$server" ;;
esac
wait "$server"
[ "$how" != leave ] || rm -rf "$folder"
