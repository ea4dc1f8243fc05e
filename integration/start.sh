# What a node's container runs, whatever the image: sh -c "this" start.sh PATH TEXT ... -- ARGUMENTS
# of redis-server. A file named "empty" says that the node is to forget its data: it can be put there
# while the container is down.
if [ -e /quorumlock/empty ]; then
	rm -rf /quorumlock/data /quorumlock/empty
fi
mkdir -p /quorumlock/data
while [ "$1" != -- ]; do # only once: sentinels write to theirs, and a clock's offset stays
	[ -e "$1" ] || printf '%s' "$2" >"$1"
	shift 2
done
shift
if [ -e /quorumlock/clock ]; then
	export LD_PRELOAD=/usr/lib/quorumlock-clock.so QUORUMLOCK_CLOCK_FILE=/quorumlock/clock
	[ -e "$LD_PRELOAD" ] || export LD_PRELOAD=/quorumlock/clock.so
fi
exec redis-server "$@"
