package edge

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
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
	Installation message.InstallationID `json:"-"` // stands before the seal
	Conversation message.ConversationID `json:"c"`
	Message      message.ID             `json:"m"`
	Target       []byte                 `json:"t"` // holds secrets of the platform
	Expires      int64                  `json:"e"` // unix seconds
}

// tokenVersion is the first byte of a token.
const tokenVersion = 1

// tokenKey is known to nobody but us: a consumer knows its own secret and perhaps
// that of its bot, but not those of the bots it has nothing to do with.
func tokenKey(consumer, secret, installation string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(secret+"\x00"+installation), nil,
		"penstock edge session "+consumer, 32)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// seal makes the token of a session of a consumer.
func (s *Server) seal(c *consumer, ss session) (string, error) {
	head := appendPart(appendPart([]byte{tokenVersion}, c.name), string(ss.Installation))
	if len(c.name) > maxName || len(ss.Installation) > maxName {
		return "", fmt.Errorf("session of %s: name is too long", c.name)
	}
	owner, ok := s.cfg.Outbox.Secret(ss.Installation)
	if !ok {
		return "", fmt.Errorf("session of %s: %w", c.name, errUnknownSession)
	}
	aead, err := tokenKey(c.name, c.secret(), owner)
	if err != nil {
		return "", err
	}
	plain, err := json.Marshal(ss)
	if err != nil {
		return "", fmt.Errorf("session of %s: %w", c.name, err)
	}
	return base64.RawURLEncoding.EncodeToString(aead.Seal(head, nil, plain, head)), nil
}

// maxToken bounds a token that somebody presents.
const maxToken = 8 << 10

// unseal reads a token. It fails with errUnknownSession or errExpiredSession.
func (s *Server) unseal(token string, now time.Time) (*consumer, session, error) {
	none := func(err error) (*consumer, session, error) { return nil, session{}, err }
	if len(token) > maxToken {
		return none(errUnknownSession)
	}
	b, err := base64.RawURLEncoding.DecodeString(token)
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
	aead, err := tokenKey(name, c.secret(), owner)
	if err != nil {
		return none(err)
	}
	plain, err := aead.Open(nil, nil, sealed, b[:len(b)-len(sealed)])
	var ss session
	if err != nil || json.Unmarshal(plain, &ss) != nil {
		return none(errUnknownSession)
	}
	if now.Unix() >= ss.Expires {
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
