package openapi

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

func trimEnd(s string) string   { return strings.TrimRightFunc(s, unicode.IsSpace) }
func trimStart(s string) string { return strings.TrimLeftFunc(s, unicode.IsSpace) }

// trimBlankLines takes off leading lines without anything to see, and keeps the
// indentation of the first that has something.
func trimBlankLines(s string) string {
	for {
		i := strings.IndexByte(s, '\n')
		if i < 0 || strings.TrimSpace(s[:i]) != "" {
			return s
		}
		s = s[i+1:]
	}
}

// cutAt finds the best place to cut a line within its first n bytes: after a
// sentence, else at a space, else between visible characters. A place in the
// first half is too early to be good.
func cutAt(s string, n int) int {
	if i := lastSentence(s[:n]); i > n/2 {
		return i
	}
	if i := strings.LastIndexFunc(s[:n], unicode.IsSpace); i > n/2 {
		return i
	}
	return runeCut(s, n)
}

// lastSentence is where the last sentence in s ends, 0 if none does. A full stop
// of Latin script ends one only before a space, since it also stands in numbers
// and names.
func lastSentence(s string) int {
	after := rune(0) // the rune after the one at hand
	for i := len(s); i > 0; {
		r, size := utf8.DecodeLastRuneInString(s[:i])
		switch r {
		case '。', '！', '？', '；', '…':
			return i
		case '.', '!', '?', ';':
			if unicode.IsSpace(after) {
				return i
			}
		}
		after = r
		i -= size
	}
	return 0
}

// clusterMax is how many bytes are searched for the border of a visible
// character. Longer ones are made to annoy.
const clusterMax = 128

// runeCut is the last border between visible characters at or before n, at least
// that of a rune. n is the border of a rune and more than 0.
func runeCut(s string, n int) int {
	for i := n; i > max(0, n-clusterMax); {
		if border(s, i) {
			return i
		}
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return n
}

// border tells whether s may be cut at i without splitting what shows as one
// character: not before a mark, a joiner or a skin tone, not after a joiner, not
// inside a flag, not inside a line break.
func border(s string, i int) bool {
	if i >= len(s) {
		return true
	}
	next, _ := utf8.DecodeRuneInString(s[i:])
	last, _ := utf8.DecodeLastRuneInString(s[:i])
	switch {
	case next == joiner || last == joiner || unicode.Is(unicode.M, next):
		return false
	case next >= skinFirst && next <= skinLast, last == '\r' && next == '\n':
		return false
	case flag(next) && flag(last):
		return flagsBefore(s[:i])%2 == 0
	}
	return true
}

const (
	joiner    = '\u200d'
	skinFirst = '\U0001F3FB'
	skinLast  = '\U0001F3FF'
)

// flag tells a regional indicator, of which two make one flag.
func flag(r rune) bool { return unicode.Is(unicode.Regional_Indicator, r) }

// flagsBefore counts the regional indicators at the end of s.
func flagsBefore(s string) int {
	n := 0
	for len(s) > 0 {
		r, size := utf8.DecodeLastRuneInString(s)
		if !flag(r) {
			break
		}
		s = s[:len(s)-size]
		n++
	}
	return n
}
