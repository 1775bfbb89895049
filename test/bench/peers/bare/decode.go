package main

import "encoding/json"

// frame and robot have what a bot needs of a message.
type frame struct {
	Type    string
	Headers map[string]string
	Data    string
}

type robot struct {
	ConversationID, ConversationType, ConversationTitle, MsgID, SenderID, SenderStaffID string
	SenderNick, SenderCorpID, RobotCode, ChatbotUserID, ChatbotCorpID, MsgType          string
	SessionWebhook                                                                      string

	SessionWebhookExpiredTime int64
	CreateAt                  int64
	IsInAtList, IsAdmin       bool
	AtUsers                   []struct{ DingtalkID, StaffID string }
	Text                      struct{ Content string }
}

func decoded(raw []byte) (id []byte, err error) {
	var f frame
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, err
	}
	if f.Type == "CALLBACK" {
		var r robot
		if err := json.Unmarshal([]byte(f.Data), &r); err != nil {
			return nil, err
		}
	}
	return []byte(f.Headers["messageId"]), nil
}
