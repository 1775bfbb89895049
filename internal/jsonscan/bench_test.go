package jsonscan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/penstock-io/penstock/internal/jsonscan"
)

// benchDocument is of the size and shape of a chat message: many short strings.
var benchDocument = `{"conversationId":"cidExample0001/AAAAAAAAAAAAAAAAAAAAAAAAA=",` +
	`"isAdmin":false,"createAt":1785000000000,"senderNick":"Example User",` +
	`"text":{"content":"what is the status?"},` +
	`"atUsers":[{"dingtalkId":"exampleBot0001"},{"dingtalkId":"other","staffId":"staff0002"}],` +
	strings.Repeat(`"unused":"a value that is passed over",`, 10) + `"last":null}`

func BenchmarkWalk(b *testing.B) {
	b.SetBytes(int64(len(benchDocument)))
	b.ReportAllocs()
	for b.Loop() {
		for m := jsonscan.ReadObject(benchDocument); m.Next(); {
			if m.Key() == "senderNick" {
				sink = m.Value().Text()
			}
		}
	}
}

func BenchmarkParse(b *testing.B) {
	b.SetBytes(int64(len(benchDocument)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := jsonscan.Parse(benchDocument); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAppendText unescapes a document inside a string, BenchmarkPeerUnescape
// does it with encoding/json.
func BenchmarkAppendText(b *testing.B) {
	doc := escaped(b)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	buf := make([]byte, 0, 2*len(doc))
	for b.Loop() {
		m := jsonscan.ReadObject(doc)
		m.Next()
		buf = m.AppendText(buf[:0])
	}
}

func BenchmarkPeerUnescape(b *testing.B) {
	doc := []byte(escaped(b))
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		var v struct{ Data string }
		if err := json.Unmarshal(doc, &v); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPeerValid is what encoding/json takes to check the document, and
// BenchmarkPeerField to take one field out of it.
func BenchmarkPeerValid(b *testing.B) {
	doc := []byte(benchDocument)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if !json.Valid(doc) {
			b.Fatal("not valid")
		}
	}
}

func BenchmarkPeerField(b *testing.B) {
	doc := []byte(benchDocument)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		var v struct{ SenderNick string }
		if err := json.Unmarshal(doc, &v); err != nil {
			b.Fatal(err)
		}
	}
}

func escaped(b *testing.B) string {
	data, err := json.Marshal(map[string]string{"data": benchDocument})
	if err != nil {
		b.Fatal(err)
	}
	return string(data)
}
