package router

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/penstock-io/penstock/message"
)

// Match selects messages. Every field that is set must agree; a list agrees if
// one of its values does. The zero Match takes everything.
type Match struct {
	Installations []message.InstallationID
	Platforms     []message.Platform
	Kinds         []message.Kind
	Chats         []message.ChatType
	// Mention, when set, asks that the bot is (true) or is not (false) mentioned.
	// Platforms tell it of groups only.
	Mention *bool
	// Prefix is what the text begins with, in this case, after leading white
	// space. It stays in the text that the handler gets.
	Prefix string
	// Pattern is searched for in the text as it came.
	Pattern *regexp.Regexp
}

func (m *Match) validate() error {
	var defects []error
	add := func(field string, err error) {
		if err != nil {
			defects = append(defects, fmt.Errorf("match.%s: %w", field, err))
		}
	}
	add("installations", noneEmpty(m.Installations))
	add("platforms", noneEmpty(m.Platforms))
	add("kinds", knownIn(m.Kinds, kinds))
	add("chats", knownIn(m.Chats, chats))
	if trimLeft(m.Prefix) != m.Prefix {
		add("prefix", errors.New("begins with white space, which no text does here"))
	}
	return errors.Join(defects...)
}

// kinds and chats are what a message can hold: a misspelt one would match
// nothing, silently.
var (
	kinds = []message.Kind{
		message.KindMessage, message.KindDelegate, message.KindCard,
		message.KindQuery, message.KindPlugin, message.KindEvent,
	}
	chats = []message.ChatType{message.ChatDirect, message.ChatGroup, message.ChatNone}
)

func noneEmpty[T ~string](list []T) error {
	if i := slices.Index(list, ""); i >= 0 {
		return fmt.Errorf("value %d is empty", i+1)
	}
	return nil
}

func knownIn[T ~string](list, known []T) error {
	for _, v := range list {
		if !slices.Contains(known, v) {
			return fmt.Errorf("%q is none of %q", v, known)
		}
	}
	return nil
}

// matcher is a Match made ready for the hot path. It shares nothing with the
// caller.
type matcher struct {
	all           bool // nothing is asked
	installations set[message.InstallationID]
	platforms     set[message.Platform]
	kinds         set[message.Kind]
	chats         set[message.ChatType]
	mention       *bool
	prefix        string
	pattern       *regexp.Regexp
}

func newMatcher(m Match) matcher {
	out := matcher{
		installations: newSet(m.Installations),
		platforms:     newSet(m.Platforms),
		kinds:         newSet(m.Kinds),
		chats:         newSet(m.Chats),
		prefix:        m.Prefix,
		pattern:       m.Pattern,
	}
	if m.Mention != nil {
		out.mention = new(*m.Mention)
	}
	out.all = len(m.Installations)+len(m.Platforms)+len(m.Kinds)+len(m.Chats) == 0 &&
		m.Mention == nil && m.Prefix == "" && m.Pattern == nil
	return out
}

func (m *matcher) matches(in *message.Inbound) bool {
	return m.all || m.origin(in) && m.content(in)
}

func (m *matcher) origin(in *message.Inbound) bool {
	return m.kinds.takes(in.Kind) &&
		m.installations.takes(in.Installation) &&
		m.platforms.takes(in.Platform) &&
		m.chats.takes(in.Conversation.Type)
}

func (m *matcher) content(in *message.Inbound) bool {
	return (m.mention == nil || *m.mention == in.MentionsBot) &&
		(m.prefix == "" || strings.HasPrefix(trimLeft(in.Text), m.prefix)) &&
		(m.pattern == nil || m.pattern.MatchString(in.Text))
}

func trimLeft(s string) string { return strings.TrimLeftFunc(s, unicode.IsSpace) }

// fewValues is up to where comparing one by one beats hashing.
const fewValues = 8

// set holds values that are asked for; the empty set takes any.
type set[T comparable] struct {
	few  []T
	many map[T]struct{} // instead of few when there are more than fewValues
}

func newSet[T comparable](values []T) set[T] {
	if len(values) <= fewValues {
		return set[T]{few: slices.Clone(values)}
	}
	s := set[T]{many: make(map[T]struct{}, len(values))}
	for _, v := range values {
		s.many[v] = struct{}{}
	}
	return s
}

func (s *set[T]) takes(v T) bool {
	if s.many != nil {
		_, ok := s.many[v]
		return ok
	}
	return len(s.few) == 0 || slices.Contains(s.few, v)
}
