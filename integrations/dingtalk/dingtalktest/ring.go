package dingtalktest

// ring keeps the last values put in, up to a limit. It grows as needed.
type ring[T any] struct {
	items []T
	limit int
	next  int // where the next value goes once items is full
	gone  int // how many were pushed out
}

// put adds v and returns the value it pushed out, if any.
func (r *ring[T]) put(v T) (out T, full bool) {
	if len(r.items) < r.limit {
		r.items = append(r.items, v)
		return out, false
	}
	out, r.items[r.next] = r.items[r.next], v
	r.next = (r.next + 1) % r.limit
	r.gone++
	return out, true
}

// list copies the values, oldest first.
func (r *ring[T]) list() []T {
	out := make([]T, 0, len(r.items))
	out = append(out, r.items[r.next:]...)
	return append(out, r.items[:r.next]...)
}

// total is how many values were ever put in.
func (r *ring[T]) total() int { return len(r.items) + r.gone }
