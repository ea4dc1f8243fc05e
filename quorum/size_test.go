package quorum

import (
	"testing"
	"unsafe"
)

// TestWhatALockAndItsUnlockTake: with many callers at once, what is allocated for each has to be
// cleared and collected by the processors that the nodes are asked with. Go rounds up: to 1,024 and
// 704 bytes, eight of which are its own.
func TestWhatALockAndItsUnlockTake(t *testing.T) {
	t.Parallel()
	for what, size := range map[string][2]uintptr{
		"an attempt at five nodes": {unsafe.Sizeof(attemptOfFive{}), 1024 - 8},
		"a release":                {unsafe.Sizeof(releasePoll{}), 704 - 8},
	} {
		if size[0] > size[1] {
			t.Errorf("%s takes %d bytes, want %d at most", what, size[0], size[1])
		}
	}
}
