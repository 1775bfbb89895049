package dingtalk

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/gorilla/websocket"

	"github.com/penstock-io/penstock/integrations"
)

// ending tells how the session ended. A break of the socket that we made is the
// cause; what the reader then saw is its echo.
func (s *session) ending(read error) integrations.End {
	if s.leaving.Load() {
		return integrations.End{Why: integrations.Stopped}
	}
	cause := s.sock.Err()
	if cause == nil {
		cause = read
	}
	code, err := s.judge(cause)
	s.mu.Lock()
	asked := s.phase > serving
	s.mu.Unlock()
	if asked {
		return integrations.End{Why: integrations.Asked, Code: "disconnect"}
	}
	return *lost(code, err)
}

// judge is the one place that names what broke a socket.
func (s *session) judge(cause error) (code string, err error) {
	var closed *websocket.CloseError
	switch {
	case errors.Is(cause, errSilent):
		return "silent", fmt.Errorf("%w (%v)", errSilent, s.c.cfg.Silence)
	case errors.Is(cause, errAppSilent):
		return "app_silent", fmt.Errorf("%w (%v)", errAppSilent, s.c.cfg.AppSilence)
	case errors.Is(cause, errNotReading):
		return "not_reading", errNotReading
	case errors.Is(cause, websocket.ErrReadLimit):
		return "frame_too_large", fmt.Errorf("read: a message exceeds ReadLimit, %d bytes: %w",
			s.c.cfg.ReadLimit, cause)
	case errors.As(cause, &closed) && closed.Code != websocket.CloseAbnormalClosure:
		return "closed_" + strconv.Itoa(closed.Code), fmt.Errorf("the gateway closed with code %d: %q",
			closed.Code, s.c.hide.excerpt([]byte(closed.Text)))
	case closed != nil, isBroken(cause): // 1006 is what the reader makes of a bare end
		return "broken", fmt.Errorf("read: %w", cause)
	default:
		return "protocol", fmt.Errorf("read: %w", cause)
	}
}

// isBroken tells a fault of the network from one of the protocol.
func isBroken(err error) bool {
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed)
}
