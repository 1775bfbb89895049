package dingtalk

import (
	"errors"
	"net/url"
	"strings"
)

// secrets hides words in texts that come from elsewhere: a gateway or a proxy may
// quote a request in its complaint about it.
type secrets []string

const hidden = "[hidden]"

// shortest is the length below which a word keeps no secret, and would only blot
// out parts of others.
const shortest = 4

// with adds a word, as it is and as it stands in a URL.
func (s secrets) with(word string) secrets {
	if len(word) < shortest {
		return s
	}
	out := append(s[:len(s):len(s)], word)
	if esc := url.QueryEscape(word); esc != word {
		out = append(out, esc)
	}
	return out
}

// text hides the words in t.
func (s secrets) text(t string) string {
	for _, w := range s {
		t = strings.ReplaceAll(t, w, hidden)
	}
	return t
}

// err gives an error that may be shown. One whose text holds a secret loses its
// chain, since whoever unwraps it would find the secret again.
func (s secrets) err(err error) error {
	if err == nil {
		return nil
	}
	said := err.Error()
	if clean := s.text(said); clean != said {
		return errors.New(clean)
	}
	return err
}

// excerptLen is how much of a foreign text is quoted.
const excerptLen = 120

// excerpt quotes the beginning of a foreign text on one line. Secrets are hidden
// before it is cut, lest half a secret be left.
func (s secrets) excerpt(b []byte) string {
	t := strings.Join(strings.Fields(strings.ToValidUTF8(string(b), "?")), " ")
	t = s.text(t)
	if r := []rune(t); len(r) > excerptLen {
		t = string(r[:excerptLen]) + "..."
	}
	return t
}
