package relay

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/message"
)

func TestAnswersAreBounded(t *testing.T) {
	var a answers
	key := func(i int) claimKey { return claimKey{"bot", message.ID(strconv.Itoa(i))} }
	for i := range 3 * maxAnswers {
		a.expect(key(i))
		a.give(key(i), message.Accept, []byte(strings.Repeat("x", 10<<10)))
	}
	require.LessOrEqual(t, len(a.by), maxAnswers)
	require.LessOrEqual(t, a.bytes, maxAnswerBytes+10<<10)
	require.LessOrEqual(t, len(a.order), maxAnswers)

	a.expect(key(-1))
	a.give(key(-1), message.Accept, make([]byte, maxAnswer+1))
	require.Nil(t, a.by[key(-1)])
	total := 0
	for _, r := range a.by {
		total += len(r.body)
	}
	require.Equal(t, total, a.bytes)
}
