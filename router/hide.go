package router

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// minHidden is the length from which a word counts as a secret. Shorter ones
// would blank out ordinary text and are no secret worth the name.
const minHidden = 4

// hider takes secrets out of text that somebody else wrote, such as the page
// an endpoint shows with an error, which may well repeat the request.
type hider struct {
	// immutable
	words *strings.Replacer
}

// newHider hides each of the secrets, also as it stands inside a URL.
func newHider(secrets ...string) hider {
	var words []string
	for _, s := range secrets {
		for _, form := range []string{s, url.QueryEscape(s), url.PathEscape(s)} {
			if len(form) >= minHidden {
				words = append(words, form)
			}
		}
	}
	// At one place the first pair wins, so the longest must come first.
	slices.SortFunc(words, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	pairs := make([]string, 0, 2*len(words))
	for _, w := range slices.Compact(words) {
		pairs = append(pairs, w, "[hidden]")
	}
	return hider{words: strings.NewReplacer(pairs...)}
}

// clean makes one printable line of at most about limit bytes from b. Secrets go
// before the cut, since a half of one would not be recognised.
func (h hider) clean(b []byte, limit int) string {
	s := h.words.Replace(strings.ToValidUTF8(string(b), "\uFFFD"))
	s = userinfo.ReplaceAllString(s, "://[hidden]@")
	s = session.ReplaceAllString(s, "${1}[hidden]")
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
	return cut(strings.Join(strings.Fields(s), " "), limit)
}

// userinfo is what stands before the host in an address, such as a proxy's.
var userinfo = regexp.MustCompile(`://[^/@\s]*@`)

// session is the secret part of a reply address. The message that a handler gets
// can hold one, and a handler that fails may show what it got.
var session = regexp.MustCompile(`(?i)(session(?:=|%3d|\\*u003d))[^&"'\\\s<>]+`)

// cover gives err a text without secrets and keeps its chain.
func (h hider) cover(err error) error {
	text := h.clean([]byte(err.Error()), snippetShown)
	if text == err.Error() {
		return err
	}
	return &covered{text: text, err: err}
}

type covered struct {
	text string
	err  error
}

func (e *covered) Error() string { return e.text }

func (e *covered) Unwrap() error { return e.err }

// cut shortens s to at most limit bytes and marks that it did.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
