package spelling_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-io/penstock/internal/spelling"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"same", "same", 0},
		{"client_secrt", "client_secret", 1},
		{"dingtlak", "dingtalk", 2},
		{"kitten", "sitting", 3},
	} {
		require.Equal(t, c.want, spelling.Distance(c.a, c.b), "%q, %q", c.a, c.b)
	}
}
