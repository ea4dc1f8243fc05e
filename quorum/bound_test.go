package quorum

import (
	"errors"
	"strings"
	"testing"
)

// feed gives text to fresh bounds, size bytes at a time.
func feed(text string, size int) error {
	b := replyBounds{left: mostReply}
	for len(text) > 0 {
		n := min(size, len(text))
		if err := b.take([]byte(text[:n])); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

func kindOf(err error) string {
	var reply *replyError
	errors.As(err, &reply)
	if reply == nil {
		return ""
	}
	return reply.kind
}

func TestHonestRepliesPass(t *testing.T) {
	t.Parallel()
	info := strings.Repeat("x", 300<<10)
	for name, text := range map[string]string{
		"simple":          "+PONG\r\n-ERR no\r\n:1\r\n",
		"a script's":      "$26\r\n+ 1764403200 123457 0 0 0\n\r\n$1\r\n0\r\n",
		"nil":             "$-1\r\n*-1\r\n_\r\n",
		"empty":           "$0\r\n\r\n*0\r\n%0\r\n+OK\r\n",
		"INFO":            "$307200\r\n" + info + "\r\n",
		"CONFIG GET":      "*2\r\n$20\r\nmin-replicas-max-lag\r\n$2\r\n10\r\n",
		"HELLO 3":         "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nmodules\r\n*0\r\n+OK\r\n",
		"nested":          "*2\r\n*1\r\n:1\r\n*2\r\n$1\r\na\r\n_\r\n+OK\r\n",
		"RESP3 kinds":     ",1.5\r\n#t\r\n(123\r\n=5\r\ntxt:a\r\n!3\r\nERR\r\n~1\r\n:1\r\n>1\r\n+x\r\n",
		"a line of 2 KiB": "-ERR " + strings.Repeat("y", 2048) + "\r\n",
	} {
		for _, size := range []int{len(text), 7, 1} {
			if err := feed(text, size); err != nil {
				t.Errorf("%s, %d bytes at a time: got %v, want nil", name, size, err)
			}
		}
	}
}

func TestWhatGoesTooFarIsRefusedBeforeItIsHandedOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"64 MB":                  {"$67108864\r\n", tooLarge},
		"9e18 bytes":             {"$9000000000000000000\r\n", tooLarge},
		"more than an int64":     {"$99999999999999999999\r\n", tooLarge},
		"with zeros before it":   {"$000000067108864\r\n", tooLarge},
		"with a plus":            {"$+67108864\r\n", tooLarge},
		"verbatim":               {"=67108864\r\n", tooLarge},
		"an error":               {"!67108864\r\n", tooLarge},
		"in an array":            {"*1\r\n$67108864\r\n", tooLarge},
		"elements":               {"*1000000000\r\n", tooLarge},
		"a map":                  {"%2000\r\n", tooLarge},
		"a push":                 {">1025\r\n", tooLarge},
		"arrays in arrays":       {strings.Repeat("*1\r\n", 9), tooLarge},
		"a line without end":     {"+" + strings.Repeat("z", mostReply+1), tooLarge},
		"a number without end":   {"$" + strings.Repeat("1", 100) + "\r\n", tooLarge},
		"below -1":               {"$-2\r\n", notRESP},
		"streamed":               {"$?\r\n", notRESP},
		"no number":              {"*\r\n", notRESP},
		"no carriage return":     {"$5\nhello\r\n", notRESP},
		"an attribute":           {"|1\r\n+a\r\n+b\r\n", notRESP},
		"HTTP":                   {"HTTP/1.1 400 Bad Request\r\n", notRESP},
		"an empty line":          {"\r\n", notRESP},
		"garbage after a string": {"$2\r\nab\r\nxx+OK\r\n", notRESP},
		"bytes":                  {"\x00\xff\x16\x03\x01", notRESP},
	} {
		for _, size := range []int{len(c.text), 1} {
			if err := feed(c.text, size); kindOf(err) != c.want {
				t.Errorf("%s, %d bytes at a time: got %v, want %s", name, size, err, c.want)
			} else if len(err.Error()) > 300 {
				t.Errorf("%s: the error has %d bytes, want few", name, len(err.Error()))
			}
		}
	}
}

// TestOnePipelineHasABound: each reply may be small enough, and all of them together too much.
func TestOnePipelineHasABound(t *testing.T) {
	t.Parallel()
	half := "$524288\r\n" + strings.Repeat("x", mostReply/2) + "\r\n"
	if err := feed(half+half+half, 1<<15); kindOf(err) != tooLarge {
		t.Errorf("three replies of 512 KiB to one pipeline: got %v, want %s", err, tooLarge)
	}
	b := replyBounds{left: mostReply}
	for i := range 3 {
		b.left = mostReply // as by a Write in between
		if err := b.take([]byte(half)); err != nil {
			t.Errorf("reply %d of 512 KiB, each asked for by itself: got %v, want nil", i, err)
		}
	}
	// A subscription reads on and on and writes now and then.
	message := "*3\r\n$7\r\nmessage\r\n$3\r\nabc\r\n$1000\r\n" + strings.Repeat("x", 1000) + "\r\n"
	b = replyBounds{left: mostReply}
	for i := range 10_000 {
		if err := b.take([]byte(message)); err != nil {
			t.Fatalf("message %d: got %v, want no end", i, err)
		}
	}
}

// FuzzReplyBounds: how the stream is cut into reads changes nothing, and nothing is kept of it.
func FuzzReplyBounds(f *testing.F) {
	f.Add("+OK\r\n$5\r\nhello\r\n*2\r\n:1\r\n_\r\n", 3)
	f.Add("*1\r\n*1\r\n*1\r\n$-1\r\n", 2)
	f.Add("$67108864\r\n", 1)
	f.Add("HTTP/1.1", 5)
	f.Add("%1\r\n+a\r\n=7\r\ntxt:abc\r\n", 4)
	f.Fuzz(func(t *testing.T, text string, size int) {
		if text == "" || size <= 0 {
			return
		}
		whole, parts, bytes := feed(text, len(text)), feed(text, size), feed(text, 1)
		if (whole == nil) != (parts == nil) || (whole == nil) != (bytes == nil) {
			t.Errorf("%q: %v as a whole, %v by %d bytes, %v byte by byte",
				text, whole, parts, size, bytes)
		}
		b := replyBounds{left: mostReply}
		if b.take([]byte(text)) == nil && (b.body > mostReply+2 || len(b.open) > mostDepth) {
			t.Errorf("%q: %d bytes and %d arrays are announced, above the limits",
				text, b.body, len(b.open))
		}
	})
}
