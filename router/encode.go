package router

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/penstock-io/penstock/message"
)

// encode writes m as the http and exec handlers send it: JSON in one line, valid
// UTF-8 even where the vendor's payload is not.
func encode(m *message.Inbound) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	body := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if !utf8.Valid(body) {
		body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	}
	return body, nil
}

// maxDeliveryID bounds the id sent to a handler: it stands in a header.
const maxDeliveryID = 128

// deliveryID names m for a handler that wants to do things once: the same at
// every try and different for every other message. It has only letters, digits
// and "-_%:", thus no dot, which separates the parts of what is signed.
func deliveryID(m *message.Inbound) string {
	id := escape(string(m.Installation)) + ":" + escape(string(m.ID))
	if len(id) <= maxDeliveryID {
		return id
	}
	// Two colons, which the other form never has, keep the forms apart.
	sum := sha256.Sum256([]byte(id))
	return "sha256::" + hex.EncodeToString(sum[:])
}

func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; plain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '_'
}
