package integrationtest_test

import (
	"testing"

	"github.com/penstock-io/penstock/integrations/integrationtest"
)

// A platform's conformance test is little more than this.
func ExampleRun() {
	testConformance := func(t *testing.T) {
		integrationtest.Run(t, integrationtest.Env{
			New:      func(integrationtest.TB) integrationtest.Gateway { return newPlatform("") },
			Features: everything,
		})
	}
	_ = testConformance
}
