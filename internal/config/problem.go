package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-io/penstock/internal/spelling"
)

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	File string
	Line int    // from 1; 0 when there is no line
	Key  string // path of the key, such as installations[0].client_id
	Text string
}

// String writes file:line: key: text.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if p.Key != "" {
		b.WriteString(": " + p.Key)
	}
	return b.String() + ": " + p.Text
}

// Problems is everything that is wrong with a configuration, in the order of the
// file.
type Problems []Problem

// Error lists every problem on a line of its own.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

func (ps Problems) sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int { return a.Line - b.Line })
	return ps
}

// nearest gives the word that s is most likely meant to be, or "": the one that a
// few letters turn it into, or the only one that it is a part of.
func nearest(s string, words []string) string {
	if len(s) > maxWord {
		return ""
	}
	best, bestDist := "", max(1, (len(s)+2)/3)+1
	var around []string
	for _, w := range words {
		if d := spelling.Distance(s, w); d < bestDist {
			best, bestDist = w, d
		}
		if len(s) >= 3 && strings.Contains(w, s) {
			around = append(around, w)
		}
	}
	if best == "" && len(around) == 1 {
		return around[0]
	}
	return best
}

// maxWord is from where a word is like no other.
const maxWord = 64
