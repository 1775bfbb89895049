package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFramesTellTheirNumberAndTimes(t *testing.T) {
	t.Parallel()
	raw := []byte(`{"headers":{"messageId":"x","time":"1790000000123"},` +
		`"data":"{\"msgId\":\"msgBlast0000_0000000042_A==\",` +
		`\"text\":{\"content\":\"#0000000042 pushed@1790000000120456789 \"}}"}`)
	n, err := numberOf(raw)
	require.NoError(t, err)
	require.Equal(t, 42, n)
	require.Equal(t, int64(1_790_000_000_120_456_789), pushedAt(raw).UnixNano())
	require.Equal(t, int64(1_790_000_000_123), madeAt(raw).UnixMilli())

	_, err = numberOf([]byte(`{"headers":{}}`))
	require.ErrorIs(t, err, errNoNumber)
	require.Zero(t, pushedAt([]byte("#0000000042 xxx")))
	require.Zero(t, madeAt([]byte("{}")))
}

func TestCrowdKnowsOrderCopiesAndDelays(t *testing.T) {
	t.Parallel()
	c := newCrowd("", 2)
	began := time.Unix(1000, 0)
	see := func(n int, took time.Duration) {
		pushed := began.Add(time.Duration(n) * time.Second)
		c.see(n, pushed, pushed.Add(took))
	}
	see(0, 5*time.Millisecond)
	see(2, 3*time.Millisecond)
	see(1, 7*time.Millisecond) // of the other conversation
	see(0, time.Minute)        // a copy has no place in the order
	see(6, time.Millisecond)
	see(4, time.Millisecond)
	require.Equal(t, 1, c.inversions)
	require.Equal(t, 1, c.again)

	all := func(int) bool { return true }
	even := func(chat int) bool { return chat == 0 }
	to := began.Add(3 * time.Second)
	require.Equal(t, []time.Duration{3e6, 5e6, 7e6}, c.waits(began, to, all))
	require.Equal(t, []time.Duration{3e6, 5e6}, c.waits(began, to, even))
	require.Empty(t, c.waits(to, to, all))
}

func TestPercentiles(t *testing.T) {
	t.Parallel()
	var all []time.Duration
	for i := range 1000 {
		all = append(all, time.Duration(i))
	}
	require.Equal(t, time.Duration(990), at(all, 99))
	require.Equal(t, time.Duration(999), at(all, 100))
	require.Zero(t, at(nil, 99))
}
