package crash_test

// The daemon under test is built by the tests. Its code is imported as well, so that
// the results of an earlier run are not taken for those of changed code.
import _ "github.com/penstock-io/penstock/internal/app"
