package edge

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/penstock-io/penstock/message"
)

// Errors of a reply address.
var (
	errUnknownSession = errors.New("no such session")
	errExpiredSession = errors.New("the session has expired")
)

// session is what a reply address stands for. It travels sealed inside the address,
// so that it is good after a restart and nothing has to be kept for it.
type session struct {
	Installation message.InstallationID // stands before the seal
	Conversation message.ConversationID
	Message      message.ID
	Target       []byte // holds secrets of the platform
	Expires      int64  // unix seconds
}

// tokenVersion is the first byte of a token.
const tokenVersion = 2

// appendTo adds what is sealed.
func (ss *session) appendTo(b []byte) []byte {
	for _, part := range []string{string(ss.Conversation), string(ss.Message), string(ss.Target)} {
		b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
	}
	return binary.AppendVarint(b, ss.Expires)
}

// readSession reads what was sealed.
func readSession(b []byte) (ss session, ok bool) {
	var parts [3]string
	for i := range parts {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return ss, false
		}
		parts[i], b = string(b[size:size+int(n)]), b[size+int(n):] //nolint:gosec // it fits
	}
	expires, size := binary.Varint(b)
	return session{
		Conversation: message.ConversationID(parts[0]), Message: message.ID(parts[1]),
		Target: []byte(parts[2]), Expires: expires,
	}, size == len(b) && size > 0
}

// tokenKeys are the keys of tokens, each made once. It may be used from any number of
// goroutines.
type tokenKeys struct {
	mu sync.Mutex // guards by
	by map[tokenOwner]cipher.AEAD
}

// tokenOwner is what a key is made of. It is known to nobody but us: a consumer knows
// its own secret and perhaps that of its bot, but not those of the bots it has nothing
// to do with.
type tokenOwner struct{ consumer, secret, installation string }

// maxKeys bounds the keys that are kept; those of old secrets go with the others.
const maxKeys = 4096

func (k *tokenKeys) of(o tokenOwner) (cipher.AEAD, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if aead := k.by[o]; aead != nil {
		return aead, nil
	}
	key, err := hkdf.Key(sha256.New, []byte(o.secret+"\x00"+o.installation), nil,
		"penstock edge session "+o.consumer, 32)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	if k.by == nil || len(k.by) >= maxKeys {
		k.by = map[tokenOwner]cipher.AEAD{}
	}
	k.by[o] = aead
	return aead, nil
}

// seal makes the token of a session of a consumer.
func (s *Server) seal(c *consumer, ss session) (string, error) {
	if len(c.name) > maxName || len(ss.Installation) > maxName {
		return "", fmt.Errorf("session of %s: name is too long", c.name)
	}
	owner, ok := s.cfg.Outbox.Secret(ss.Installation)
	if !ok {
		return "", fmt.Errorf("session of %s: %w", c.name, errUnknownSession)
	}
	aead, err := s.keys.of(tokenOwner{c.name, c.secret(), owner})
	if err != nil {
		return "", err
	}
	b := make([]byte, 0, maxHead+aead.Overhead()+len(ss.Conversation)+len(ss.Message)+len(ss.Target))
	head := appendPart(appendPart(append(b, tokenVersion), c.name), string(ss.Installation))
	plain := ss.appendTo(nil)
	return base64.RawURLEncoding.EncodeToString(aead.Seal(head, nil, plain, head)), nil
}

// maxHead is the longest that stands before the seal, and the lengths behind it.
const maxHead = 1 + 2*(1+maxName) + 4*binary.MaxVarintLen64

// maxToken bounds a token that somebody presents.
const maxToken = 8 << 10

// unseal reads a token. It fails with errUnknownSession or errExpiredSession.
func (s *Server) unseal(token string, now time.Time) (*consumer, session, error) {
	none := func(err error) (*consumer, session, error) { return nil, session{}, err }
	if len(token) > maxToken || strings.ContainsAny(token, "\r\n") {
		return none(errUnknownSession)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) == 0 || b[0] != tokenVersion {
		return none(errUnknownSession)
	}
	name, rest, ok1 := cutPart(b[1:])
	installation, sealed, ok2 := cutPart(rest)
	c := s.consumer(name)
	owner, ok3 := s.cfg.Outbox.Secret(message.InstallationID(installation))
	if !ok1 || !ok2 || !ok3 || c == nil {
		return none(errUnknownSession)
	}
	aead, err := s.keys.of(tokenOwner{name, c.secret(), owner})
	if err != nil {
		return none(err)
	}
	plain, err := aead.Open(nil, nil, sealed, b[:len(b)-len(sealed)])
	if err != nil {
		return none(errUnknownSession)
	}
	ss, ok := readSession(plain)
	switch {
	case !ok:
		return none(errUnknownSession)
	case now.Unix() >= ss.Expires:
		return none(errExpiredSession)
	}
	ss.Installation = message.InstallationID(installation)
	return c, ss, nil
}

// appendPart adds a short string behind its length.
func appendPart(b []byte, s string) []byte { return append(append(b, byte(len(s))), s...) }

func cutPart(b []byte) (part string, rest []byte, ok bool) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return "", nil, false
	}
	n := 1 + int(b[0])
	return string(b[1:n]), b[n:], true
}

// newID is a name that nobody can guess.
func newID() string { return rand.Text() }
