package router

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
)

// Headers of a request to an HTTP handler, by the Standard Webhooks
// specification; the last one is ours.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
	headerAttempt   = "Penstock-Attempt"
)

// secretPrefix marks a secret that stands in base64.
const secretPrefix = "whsec_"

// signingKey gives the bytes of a configured secret. Its errors do not show it.
func signingKey(secret string) ([]byte, error) {
	if secret == "" {
		return nil, errors.New("is empty")
	}
	encoded, ok := strings.CutPrefix(secret, secretPrefix)
	if !ok {
		return []byte(secret), nil
	}
	key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
	if err != nil || len(key) == 0 {
		return nil, errors.New("begins with " + secretPrefix + " and is not base64 after it")
	}
	return key, nil
}

// sign gives the value of the signature header: one "v1" signature of
// "id.timestamp.body" for each key, so that a receiver which knows any of them
// is content while secrets change.
func sign(keys [][]byte, id string, timestamp int64, body []byte) string {
	var b strings.Builder
	for i, key := range keys {
		if i > 0 {
			b.WriteByte(' ')
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + strconv.FormatInt(timestamp, 10) + "."))
		mac.Write(body)
		b.WriteString("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return b.String()
}
