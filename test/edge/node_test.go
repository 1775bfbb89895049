package edge_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// nodeDir fetches the vendor's SDK for Node once.
func (w *world) nodeDir() string {
	w.t.Helper()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			w.t.Skipf("%s is not installed", tool)
		}
	}
	dir := w.t.TempDir()
	for _, name := range []string{"package.json", "bot.mjs"} {
		b, err := os.ReadFile(filepath.Join("testdata", "nodebot", name))
		require.NoError(w.t, err)
		require.NoError(w.t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	npm := exec.CommandContext(w.ctx(), "npm", "install", "--no-audit", "--no-fund", "--no-package-lock")
	npm.Dir = dir
	if out, err := npm.CombinedOutput(); err != nil {
		w.t.Skipf("the SDK cannot be fetched: %v: %.500s", err, out)
	}
	return dir
}

// nodeBot starts a bot on the SDK in dir.
func (w *world) nodeBot(dir string) *bot {
	w.t.Helper()
	cmd := exec.Command("node", filepath.Join(dir, "bot.mjs"), w.svc.App.EdgeURL(), botID, botSecret)
	cmd.Dir = dir
	return w.run(cmd)
}

func TestABotOnTheVendorsSDKForNode(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("fetches a package")
	}
	w := newWorld(t)
	dir := w.nodeDir()
	one := w.nodeBot(dir)
	w.connections(1)
	w.push(chats, 1, 5)
	_, err := w.app().AwaitSent(w.ctx(), 15)
	require.NoError(t, err)
	require.Contains(t, w.press(), `"pressed":"node"`)

	w.stop()
	w.push(chats, 6, 8)
	w.start()
	_, err = w.app().AwaitSent(w.ctx(), 24)
	require.NoError(t, err)
	w.connections(1)
	w.leaveAndComeBack()
	w.push(chats, 9, 10)
	_, err = w.app().AwaitSent(w.ctx(), 30)
	require.NoError(t, err)
	for _, c := range chats {
		require.Equal(t, numbers("node: ", 10), w.said()[c], c)
	}

	two := w.nodeBot(dir)
	w.connections(2)
	w.push(chats, 11, 30)
	w.eventually(func() bool { return one.out.count() > 30 && two.out.count() > 0 })
	one.kill()
	w.push(chats, 31, 32)
	w.eventually(func() bool { return w.heard(32) })
	for _, c := range chats {
		require.Equal(t, numbers("node: ", 32), firsts(w.said()[c]), c)
	}
	w.connections(1)
	w.stop()
}
