package integrationtest

// Recorder makes a TB that does not fail the test, and runs a check on it.
type Recorder func() (t TB, run func(func()) (failed bool))

// RunOnly runs one check on a recorder and tells whether it failed.
func RunOnly(record Recorder, env Env, name string) (failed bool) {
	t, run := record()
	for _, c := range checks {
		if c.name == name {
			failed = run(func() { c.run(newBench(t, env.withDefaults())) })
		}
	}
	return failed
}
