package redisproc

import (
	"bufio"
	"fmt"
	"strings"
	"testing"
)

func TestAnswersAreReadWhole(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"+OK\r\n":                       "OK, <nil>",
		"-ERR no\r\n":                   "<nil>, ERR no",
		":-7\r\n":                       "-7, <nil>",
		"$5\r\na\r\nbc\r\n":             "a\r\nbc, <nil>",
		"$-1\r\n":                       "<nil>, <nil>",
		"*-1\r\n":                       "<nil>, <nil>",
		"*2\r\n:1\r\n*1\r\n+x\r\n":      "[1 [x]], <nil>",
		"*3\r\n:1\r\n-E x\r\n$-1\r\n":   "[1 E x <nil>], <nil>",
		"":                              "<nil>, EOF",
		"\r\n":                          "<nil>, empty answer",
		"$5\r\nab":                      "<nil>, unexpected EOF",
		"*2\r\n:1\r\n":                  "<nil>, EOF",
		":x\r\n":                        `<nil>, answer ":x": strconv.ParseInt: parsing "x": invalid syntax`,
		"?5\r\n":                        `<nil>, answer "?5" is of no known kind`,
		"*1\r\n*1\r\n-WRONGTYPE no\r\n": "[[WRONGTYPE no]], <nil>",
	} {
		answer, err := readAnswer(bufio.NewReader(strings.NewReader(in)))
		if got := fmt.Sprintf("%v, %v", answer, err); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
