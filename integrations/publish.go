package integrations

import "time"

// publish makes the present state visible, and tells the hook if it has changed.
func (k *keeper) publish(now time.Time) {
	k.count()
	if k.wanting() {
		k.status.NextOpen = k.due
	} else {
		k.status.NextOpen = time.Time{}
	}
	k.show(k.state(now), now)
}

// finish makes the end of the Run visible and lets another one begin.
func (k *keeper) finish(now time.Time) {
	k.count()
	k.status.NextOpen = time.Time{}
	k.show(StateStopped, now)
	k.sup.mu.Lock()
	k.sup.running = false
	k.sup.mu.Unlock()
}

// count sets the numbers of the status that follow from the sessions.
func (k *keeper) count() {
	k.status.Failures = k.failures
	k.status.Sessions, k.status.Live = len(k.open), 0
	for _, x := range k.open {
		if x.live() {
			k.status.Live++
		}
	}
}

// state derives the state. A live session outweighs everything but a displaced
// installation, which needs a person.
func (k *keeper) state(now time.Time) State {
	waiting := k.current() == nil && k.failures > 0 && now.Before(k.due)
	switch {
	case k.displaced:
		return StateDisplaced
	case k.status.Live > 0 && !waiting:
		return StateReady
	case k.status.Live > 0:
		return StateDegraded
	case k.refused:
		return StateParked
	case k.everLive || k.failures > 0:
		return StateDegraded
	default:
		return StateStarting
	}
}

func (k *keeper) show(state State, now time.Time) {
	changed := k.status.State != state
	if changed {
		k.status.State, k.status.Since = state, now
	}
	k.sup.mu.Lock()
	k.status.Platform = k.sup.status.Platform // Replace sets it
	k.sup.status = k.status
	st := k.sup.statusLocked()
	k.sup.mu.Unlock()
	if changed && k.sup.cfg.OnState != nil {
		k.sup.cfg.OnState(st)
	}
}
