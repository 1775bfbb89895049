package simulate

import (
	"testing"

	"github.com/penstock-io/penstock/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
