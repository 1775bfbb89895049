package integrations

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/penstock-io/penstock/internal/spelling"
	"github.com/penstock-io/penstock/message"
)

// Errors of a Registry.
var (
	// ErrTaken means that a platform is registered already.
	ErrTaken = errors.New("platform is registered already")
	// ErrFactory means that a factory is nil, panicked, or made half a driver.
	ErrFactory = errors.New("unusable factory")
)

// Factory makes the driver of one installation out of its settings. It starts
// nothing. Settings of a type it does not know are an error.
type Factory func(inst message.InstallationID, settings any) (Driver, error)

// Registry finds a platform's factory by name. The zero value is empty and ready
// for use. All methods may be called from any number of goroutines.
type Registry struct {
	mu        sync.RWMutex
	factories map[message.Platform]Factory // guarded by mu
}

// Register adds a platform. An error, for a nil factory, an empty name or a name
// that is taken, leaves the registry as it was.
func (r *Registry) Register(p message.Platform, f Factory) error {
	if p == "" {
		return fmt.Errorf("register platform: %w: the name is empty", ErrFactory)
	}
	if f == nil {
		return fmt.Errorf("register platform %q: %w: it is nil", p, ErrFactory)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.factories[p]; ok {
		return fmt.Errorf("register platform %q: %w", p, ErrTaken)
	}
	if r.factories == nil {
		r.factories = make(map[message.Platform]Factory)
	}
	r.factories[p] = f
	return nil
}

// Platforms lists what is registered, in alphabetical order.
func (r *Registry) Platforms() []message.Platform {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.factories))
}

// Open makes the driver of an installation. A platform that nobody registered is
// an [*UnknownError]; a factory that panics is an [ErrFactory]. A driver without
// a connector is refused, one without a sender is not: a platform may be
// receive-only.
func (r *Registry) Open(
	p message.Platform, inst message.InstallationID, settings any,
) (Driver, error) {
	r.mu.RLock()
	f := r.factories[p]
	r.mu.RUnlock()
	if f == nil {
		known := r.Platforms()
		return Driver{}, &UnknownError{Platform: p, Known: known, Nearest: nearest(p, known)}
	}
	d, err := f.open(inst, settings)
	if err != nil {
		return Driver{}, fmt.Errorf("open installation %q on %s: %w", inst, p, err)
	}
	return d, nil
}

// open calls the factory and keeps its panics inside. What a panic carried is not
// told, for it may hold a secret of the settings.
func (f Factory) open(inst message.InstallationID, settings any) (d Driver, err error) {
	defer func() {
		if v := recover(); v != nil {
			d, err = Driver{}, fmt.Errorf("%w: it panicked with a %T", ErrFactory, v)
		}
	}()
	if d, err = f(inst, settings); err != nil {
		return Driver{}, err
	}
	if d.Connector == nil {
		return Driver{}, fmt.Errorf("%w: it made no connector", ErrFactory)
	}
	return d, nil
}

// UnknownError is a platform that nobody registered. Nearest is the known name
// that looks most like it, empty if none does.
type UnknownError struct {
	Platform message.Platform
	Known    []message.Platform
	Nearest  message.Platform
}

// Error names the platform, the one that was perhaps meant, and all known ones.
func (e *UnknownError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "unknown platform %q", e.Platform)
	if e.Nearest != "" {
		fmt.Fprintf(&b, ", did you mean %q?", e.Nearest)
	}
	if len(e.Known) == 0 {
		b.WriteString(" (none is registered)")
		return b.String()
	}
	b.WriteString(" (known:")
	for i, k := range e.Known {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %s", k)
	}
	b.WriteByte(')')
	return b.String()
}

// nearest gives the known name that takes the fewest edits to become p, if a
// third of its letters or fewer are wrong.
func nearest(p message.Platform, known []message.Platform) message.Platform {
	var best message.Platform
	least := max(1, len(p)/3) + 1
	for _, k := range known {
		if d := spelling.Distance(strings.ToLower(string(p)), strings.ToLower(string(k))); d < least {
			best, least = k, d
		}
	}
	return best
}
