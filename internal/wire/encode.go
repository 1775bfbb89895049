package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrEncode means that Frame.Append failed.
var ErrEncode = errors.New("frame cannot be encoded")

// fill reserves the frame's bytes and encodes it, in this order, so that no
// memory is in use that nobody has accounted for.
func (s *Socket) fill(ctx context.Context, f Frame, o *op, w way) error {
	if w.waits() && s.cfg.Peer != nil {
		return s.fillWaiting(ctx, f, o, w)
	}
	return s.fillNow(ctx, f, o, w)
}

// fillWaiting puts the frame's deadline on everything that waits.
func (s *Socket) fillWaiting(ctx context.Context, f Frame, o *op, w way) error {
	if f.Append == nil && s.cfg.Peer.try(o.lane.class(), s.size(len(f.Payload))) == nil {
		o.held = s.size(len(f.Payload))
		s.render(o, f.Op, f.Payload)
		return nil
	}
	ctx, cancel := context.WithDeadline(ctx, o.by)
	defer cancel()
	return s.fillNow(ctx, f, o, w)
}

func (s *Socket) fillNow(ctx context.Context, f Frame, o *op, w way) error {
	if f.Append != nil {
		return s.encode(ctx, f, o, w)
	}
	err := s.reserve(ctx, o, s.size(len(f.Payload)), w)
	if err == nil {
		s.render(o, f.Op, f.Payload)
	}
	return err
}

// size is what a payload of n bytes takes on the wire.
func (s *Socket) size(n int) int { return frameSize(n, !s.cfg.Server) }

func (s *Socket) render(o *op, code Op, payload []byte) {
	o.b = slices.Grow(o.b, s.size(len(payload)))
	o.b = appendFrame(o.b, code, !s.cfg.Server, payload)
}

// reserve makes o hold size bytes. It gives back what o held before it waits:
// who waits holds nothing that others wait for.
func (s *Socket) reserve(ctx context.Context, o *op, size int, w way) error {
	c := o.lane.class()
	if more := size - o.held; more > 0 {
		err := s.cfg.Peer.try(c, more)
		if err == nil {
			o.held = size
			return nil
		}
		if !w.waits() || !errors.Is(err, ErrBudget) {
			return err
		}
		s.release(o)
		if err = s.cfg.Peer.reserve(ctx, s.gone, c, size); err != nil {
			return fmt.Errorf("wait for bytes: %w", err)
		}
		o.held = size
		return nil
	}
	var freed [classes]int
	freed[c] = o.held - size
	o.held = size
	s.cfg.Peer.release(freed)
	return nil
}

// encode runs Append among a bounded number of encoders, each of which keeps its
// place until the bytes that it made are reserved. An encoder whose bytes do not
// fit throws them away, leaves its place, and encodes again once they do: its
// place must not be kept from a tenant that has room by one that has none.
func (s *Socket) encode(ctx context.Context, f Frame, o *op, w way) error {
	for size := f.Size; ; {
		if size > 0 {
			if err := s.reserve(ctx, o, s.size(size), w); err != nil {
				return err
			}
		}
		n, err := s.encodeOnce(ctx, f, o, w)
		if n == 0 || err != nil {
			return err
		}
		size = n
	}
}

// encodeOnce returns 0 when the frame is encoded, or the payload's size for which
// there is no room yet.
func (s *Socket) encodeOnce(ctx context.Context, f Frame, o *op, w way) (int, error) {
	if err := s.cfg.Peer.encoder(ctx, s.gone, w.waits()); err != nil {
		return 0, err
	}
	defer s.cfg.Peer.encoded()
	room := newBatch()
	defer room.release()
	if err := room.fill(f.Append); err != nil {
		return 0, err
	}
	n := len(room.b)
	if err := s.fits(f.Op, n); err != nil {
		return 0, err
	}
	err := s.reserve(ctx, o, s.size(n), way{})
	if errors.Is(err, ErrBudget) && w.waits() {
		return n, nil
	}
	if err == nil {
		s.render(o, f.Op, room.b)
	}
	return 0, err
}

// fill runs an encoder of the caller's, which may fail in any way.
func (b *batch) fill(encode func([]byte) ([]byte, error)) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: panic: %v", ErrEncode, p)
		}
	}()
	got, err := encode(b.b)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrEncode, err)
	}
	b.b = got
	return nil
}
