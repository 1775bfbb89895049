package relay

import (
	"golang.org/x/time/rate"

	"github.com/penstock-io/penstock/message"
)

// maxChats bounds the remembered send limiters; beyond it all are forgotten,
// which lets each conversation burst once more.
const maxChats = 100_000

// failPart remembers that a part of a long reply will not be sent, so that the
// parts after it are not sent either: half an answer followed by its end would
// read as a whole one.
func (r *Relay) failPart(k convKey, o *message.Outbound) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.Part < o.Parts {
		r.broken[k] = o.Group
	} else if r.broken[k] == o.Group {
		delete(r.broken, k)
	}
}

// partFailed tells whether an earlier part of the same reply was given up.
func (r *Relay) partFailed(k convKey, o *message.Outbound) bool {
	if o.Parts < 2 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return o.Group != "" && r.broken[k] == o.Group
}

// forgetPart drops what was remembered of earlier replies of the conversation.
func (t *outTask) forgetPart() {
	r := t.relay
	r.mu.Lock()
	delete(r.broken, t.key())
	r.mu.Unlock()
}

func (r *Relay) chatLimiter(k convKey) *rate.Limiter {
	if r.cfg.ConversationRate.PerSecond <= 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.chats[k]
	if l == nil {
		if len(r.chats) >= maxChats {
			clear(r.chats)
		}
		l = limiter(r.cfg.ConversationRate)
		r.chats[k] = l
	}
	return l
}
