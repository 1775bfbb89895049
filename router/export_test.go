package router

// What the tests look at from inside.
var (
	Again      = again
	Encode     = encode
	DeliveryID = deliveryID
	RetryWait  = retryAfter
	Sign       = sign
	SigningKey = signingKey
	DecodeBody = decodeBody
)

// Decode reads the output of a command.
func (o Output) Decode(out []byte) (Result, error) { return o.decode(out) }

// Clean takes secrets out of text and makes it one line.
func Clean(text string, limit int, secrets ...string) string {
	return newHider(secrets...).clean([]byte(text), limit)
}

// Limits that the tests reach.
const (
	MaxReplies    = maxReplies
	MaxDeliveryID = maxDeliveryID
	StderrShown   = stderrShown
)
