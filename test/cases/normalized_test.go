package cases_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/penstock-io/penstock/message"
)

// derived are the words of cases for what is no field of a message by that name.
var derived = map[string]func(r *replay, m *message.Inbound) any{
	"chat": func(_ *replay, m *message.Inbound) any { return m.Conversation.Type },
	"sender": func(_ *replay, m *message.Inbound) any {
		if m.Sender.StaffID != "" {
			return m.Sender.StaffID
		}
		return m.Sender.ID
	},
	"sender_id":   func(_ *replay, m *message.Inbound) any { return m.Sender.ID },
	"sender_name": func(_ *replay, m *message.Inbound) any { return m.Sender.Name },
	"sender_staff_id": func(_ *replay, m *message.Inbound) any {
		return orNull(string(m.Sender.StaffID))
	},
	"conversation":    func(_ *replay, m *message.Inbound) any { return m.Conversation.ID },
	"conversation_id": func(_ *replay, m *message.Inbound) any { return m.Conversation.ID },
	"title":           func(_ *replay, m *message.Inbound) any { return m.Conversation.Title },
	"text_len_runes": func(_ *replay, m *message.Inbound) any {
		return utf8.RuneCountInString(m.Text)
	},
	"text_len_bytes": func(_ *replay, m *message.Inbound) any { return len(m.Text) },
	"media_count":    func(_ *replay, m *message.Inbound) any { return len(m.Media) },
	"raw_kept": func(r *replay, m *message.Inbound) any {
		return string(m.Raw) == r.frames[0].payload()
	},
	"age_ms": func(r *replay, m *message.Inbound) any {
		return m.Age(r.c.clock()).Milliseconds()
	},
	"sent_at_ms": func(_ *replay, m *message.Inbound) any { return m.SentAt.UnixMilli() },
	// The key is the id itself, so two ids cannot share one.
	"conversation_key_is_injective": func(r *replay, m *message.Inbound) any {
		var p struct {
			ID message.ConversationID `json:"conversationId"`
		}
		return json.Unmarshal([]byte(r.frames[0].payload()), &p) == nil &&
			p.ID != "" && m.Conversation.ID == p.ID
	},
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// checkNormalized compares the first message that was handled with the case's
// words for it.
func (r *replay) checkNormalized() {
	runs := r.runs()
	if len(runs) == 0 {
		r.fail("normalized", "nothing was handled")
		return
	}
	var want map[string]any
	if err := json.Unmarshal(r.c.Expect["normalized"], &want); err != nil {
		r.odd("normalized", err.Error())
		return
	}
	for key, value := range want {
		got, ok := r.normalized(key, &runs[0].Message)
		if !ok {
			r.odd("normalized."+key, r.c.words("normalized"))
			continue
		}
		r.want(covers(got, value), "normalized", "%s is %v", key, got)
	}
}

// normalized reads a word of a case out of a message, in its JSON form.
func (r *replay) normalized(key string, m *message.Inbound) (any, bool) {
	if read := derived[key]; read != nil {
		return generic(read(r, m)), true
	}
	v := reflect.ValueOf(*m)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name == key {
			return generic(v.Field(i).Interface()), true
		}
	}
	return nil, false
}

func generic(v any) any {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var out any
	_ = json.Unmarshal(b, &out) // it was just encoded
	return out
}

// covers tells whether got is want; of an object only the fields that want names
// count, and nothing is the same as an empty list.
func covers(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		for k, v := range want {
			ok = ok && covers(g[k], v)
		}
		return ok
	case []any:
		g, _ := got.([]any)
		if len(g) != len(want) {
			return false
		}
		for i := range want {
			if !covers(g[i], want[i]) {
				return false
			}
		}
		return true
	case nil:
		return got == nil || got == ""
	default:
		return reflect.DeepEqual(got, want)
	}
}
