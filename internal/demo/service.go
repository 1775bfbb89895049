package demo

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/penstock-io/penstock/message"
)

// stopWithin is the budget of the service's stop; it is killed a little later.
const stopWithin = 10 * time.Second

// service is this program in a process of its own, so that it can be killed. It is
// owned by one goroutine.
type service struct {
	opts     Options
	gateway  string
	endpoint string
	doubt    func(message.ID) // told of replies that may have arrived twice
	dir      string           // of its configuration and its store
	life     int
	child    *child // nil before start
}

// child is one process.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and its log has been read
	// err is of the end, and last the last line of the log that is not JSON; both
	// are written before done is closed.
	err  error
	last string
}

func newService(o Options, gateway, endpoint string, doubt func(message.ID)) (*service, error) {
	if o.Program == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		o.Program = self
	}
	dir, err := os.MkdirTemp("", "penstock-demo-")
	if err != nil {
		return nil, err
	}
	return &service{opts: o, gateway: gateway, endpoint: endpoint, doubt: doubt, dir: dir}, nil
}

// config is the configuration of the next life, which calls the endpoint under a
// path of its own.
func (s *service) config() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `stop_within: %v
log: {format: json}
admin: {listen: "off", socket: "off"}
store: {path: %q}
outbound: {installation_rate: 0, waits: [200ms, 1s]}
routes: [{handler: {http: {url: "%s/%d"}}}]
installations:
`, stopWithin, filepath.Join(s.dir, "penstock.db"), s.endpoint, s.life)
	for i := range installations {
		fmt.Fprintf(&b, `- {id: bot-%d, client_id: %s, client_secret: demo, api_base: %q,
   oapi_base: %q, allow_insecure: true, proxy: none, ping_every: %v, silence: %v}
`, i+1, clientID(i), s.gateway, s.gateway, pingEvery, silence)
	}
	return []byte(b.String())
}

// start begins the next life.
func (s *service) start() error {
	s.life++
	path := filepath.Join(s.dir, "penstock.yaml")
	if err := os.WriteFile(path, s.config(), 0o600); err != nil {
		return err
	}
	cmd := exec.Command(s.opts.Program, "run", "--watch=false", "-c", path) //nolint:gosec // this program
	log, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	s.child = &child{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go s.child.run(started, func() { s.read(log) })
	if err := <-started; err != nil {
		s.child = nil
		return fmt.Errorf("start the service: %w", err)
	}
	return nil
}

// run starts the process, lets its log be read and waits for its end.
func (c *child) run(started chan<- error, read func()) {
	defer close(c.done)
	release := dieTogether(c.cmd)
	defer release()
	err := c.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	read()
	c.err = c.cmd.Wait()
}

// read passes the log on and looks for replies that may have arrived.
func (s *service) read(log io.Reader) {
	c, lines := s.child, bufio.NewScanner(log)
	for lines.Scan() {
		fmt.Fprintln(s.opts.Log, lines.Text())
		var line struct {
			Msg   string     `json:"msg"`
			Reply message.ID `json:"reply_id"`
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			c.last = lines.Text()
		}
		if strings.HasSuffix(line.Msg, "it may have arrived") {
			id, _, _ := strings.Cut(string(line.Reply), "/")
			s.doubt(message.ID(id))
		}
	}
}

// kill ends the process without a warning and begins the next life.
func (s *service) kill() error {
	err := s.child.cmd.Process.Kill()
	<-s.child.done
	return errors.Join(err, s.start())
}

// stop ends the process as an operator does.
func (s *service) stop() error {
	c := s.child
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		_ = c.cmd.Process.Kill() // where there are no signals
	}
	select {
	case <-c.done:
	case <-time.After(stopWithin + time.Second):
		_ = c.cmd.Process.Kill() // the error is that of the end
		<-c.done
	}
	if c.err != nil {
		return fmt.Errorf("the service ended with %w: %s", c.err, c.last)
	}
	return nil
}

// close ends what is left and removes the files.
func (s *service) close() error {
	if s.child != nil {
		_ = s.child.cmd.Process.Kill() // it has ended, unless something failed
		<-s.child.done
	}
	return os.RemoveAll(s.dir)
}
