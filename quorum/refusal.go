package quorum

import (
	"errors"
	"slices"
	"strings"
)

// notRun are the error codes of nodes that ran nothing of a script: they refuse it at the door, or
// refuse its first write.
var notRun = []string{
	"NOAUTH", "WRONGPASS", "LOADING", "BUSY", "READONLY", "MISCONF", "OOM", "NOREPLICAS",
	"MASTERDOWN", "MOVED", "ASK", "CROSSSLOT", "CLUSTERDOWN", "TRYAGAIN", "NOSCRIPT",
}

// neverRan reports whether the node surely did nothing of what it was asked. NOPERM and WRONGTYPE
// are not among these errors: they can come after the first write.
func neverRan(got answer) bool {
	if got.unsent {
		return true
	}
	if got.err == nil || got.void {
		return false
	}
	if errors.Is(got.err, errNoVotes) {
		return true
	}
	code, _, _ := strings.Cut(got.err.Error(), " ")
	return isErrorReply(got.err) && slices.Contains(notRun, code)
}
