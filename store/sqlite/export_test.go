package sqlite

import (
	"context"
	"time"

	"github.com/penstock-io/penstock/store"
)

// WithClock gives a store another clock.
func WithClock(c Config, now func() time.Time) Config {
	c.now = now
	return c
}

// Round does a round of retention now.
func (s *Store) Round(ctx context.Context) error { return s.round(ctx) }

// Script runs SQL on the writing connection.
func (s *Store) Script(text string) error {
	s.write.Lock()
	defer s.write.Unlock()
	return s.w.script(text)
}

// CommitUnseen writes a group to the file as Commit does, and then believes that it
// failed.
func (s *Store) CommitUnseen(ctx context.Context, ops []store.Op) error {
	s.write.Lock()
	defer s.write.Unlock()
	err := s.transact(ctx, func(now int64) error { return s.applyLocked(ops, now) })
	s.broken = true
	return err
}

// Migrate brings a file to a version of the schema; Validate tells whether this
// program can use it. Versions is the last one.
func Migrate(ctx context.Context, path string, to int) error {
	return withConn(ctx, path, func(c *conn) error { return c.migrate(path, to) })
}

// Validate tells whether this program can use the file.
func Validate(ctx context.Context, path string) error {
	return withConn(ctx, path, (*conn).validate)
}

// Versions is the last version of the schema.
func Versions() (int, error) { return latest() }

func withConn(ctx context.Context, path string, do func(*conn) error) error {
	c, err := dial(ctx, path, readWrite)
	if err != nil {
		return err
	}
	if err := do(c); err != nil {
		_ = c.close()
		return err
	}
	return c.close()
}
