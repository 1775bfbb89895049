package wire

// Lane is a queue of a socket.
type Lane uint8

// Lanes, in the order they are emptied.
const (
	Control  Lane = iota // pings, pongs, and answers that prove we are alive
	Critical             // what must overtake the traffic, such as a notice before a stop
	Normal               // everything else
	Bulk                 // frames of BulkSize and more that others may overtake
	lanes                // how many there are; as a lane: none
)

// BulkSize is the size from which a frame belongs in the Bulk lane, unless it has
// to keep its place among smaller ones.
const BulkSize = 64 << 10

// LaneFor gives the lane of a payload of n bytes that needs no place among
// others: Bulk for a large one, Normal otherwise.
func LaneFor(n int) Lane {
	if n >= BulkSize {
		return Bulk
	}
	return Normal
}

// String is the lane's name as a metric label.
func (l Lane) String() string {
	switch l {
	case Control:
		return "control"
	case Critical:
		return "critical"
	case Normal:
		return "normal"
	case Bulk:
		return "bulk"
	}
	return "none"
}

// class tells which budget pays for the lane's frames.
func (l Lane) class() Class {
	if l == Control {
		return ControlBytes
	}
	return ContentBytes
}

// lane is a bounded queue of frames. The socket's mutex guards it.
type lane struct {
	queue             fifo // taken, to be written
	line              fifo // their senders wait until there is room
	bytes             int  // in queue
	maxFrame, maxByte int
}

// takes tells whether a frame of size bytes fits. A lane that is empty takes any
// frame, so that a byte limit below one frame cannot block for ever. Nobody
// overtakes those who stand in line.
func (l *lane) takes(size int) bool {
	return l.line.n == 0 && l.fits(size)
}

func (l *lane) fits(size int) bool {
	return l.queue.n < l.maxFrame && (l.queue.n == 0 || l.bytes+size <= l.maxByte)
}

func (l *lane) push(o *op) {
	o.phase, o.taken = queued, true
	l.queue.push(o)
	l.bytes += len(o.b)
}

func (l *lane) pop() *op {
	o := l.queue.pop()
	o.phase = flying
	l.bytes -= len(o.b)
	return o
}

// leave takes the first out of the waiting line.
func (l *lane) leave() *op {
	o := l.line.pop()
	o.phase = flying
	return o
}

// remove takes one frame out, wherever it stands.
func (l *lane) remove(o *op) {
	if o.phase == waiting {
		l.line.remove(o)
	} else {
		l.queue.remove(o)
		l.bytes -= len(o.b)
	}
	o.phase = flying
}

// fifo is a queue that needs no memory of its own, so that an idle socket has
// none.
type fifo struct {
	head, tail *op
	n          int
}

func (q *fifo) push(o *op) {
	o.next = nil
	if q.tail == nil {
		q.head = o
	} else {
		q.tail.next = o
	}
	q.tail = o
	q.n++
}

func (q *fifo) pop() *op {
	o := q.head
	q.head, o.next = o.next, nil
	if q.head == nil {
		q.tail = nil
	}
	q.n--
	return o
}

func (q *fifo) remove(o *op) {
	var before *op
	for at := q.head; at != o; at = at.next {
		before = at
	}
	if before == nil {
		q.pop()
		return
	}
	before.next, o.next = o.next, nil
	if q.tail == o {
		q.tail = before
	}
	q.n--
}
