// What a process knows of the ranks: the members, what each waits for, and rank 0's store of it.

package world

import (
	"encoding/json"
	"net"
	"sync"
	"time"
)

// store serves the ranks.
type store struct {
	listener net.Listener
	secret   string
	place    Place
	within   time.Duration
	expected func(m Member) (Expected, error)
	decision json.RawMessage
	check    func(members []Member) error
	session  string

	unknown lobby

	mu       sync.Mutex
	links    []*link // by rank
	members  []Member
	hashes   []string
	outlines map[int]chan []string
	arrived  int
	waiting  map[string]map[int]string // by barrier: who is there, with what
	done     []bool
	heard    []bool        // by rank: it has heard the store's last word, or its connection has ended
	over     chan struct{} // closed when all have left, or failed
	quiet    chan struct{} // closed when all have heard so
	closed   bool
	cause    *RankError
	begun    bool // everybody has arrived
	refused  string
	asked    bool             // a rank has given up waiting
	states   chan statedState // of ranks that were asked what they wait for
}

// peer is the connection to one rank.
type peer struct {
	rank int
	conn net.Conn
}

// statedState is the state of a rank.
type statedState struct {
	rank  int
	state *State
}

// Expected is what rank 0 knows of the graph that a rank must have, since the file is the same.
type Expected struct {
	Hash    string
	Outline func() []string // a line for each node
}

// mismatchError is a message that is not the one that was expected: the ranks do not do the same.
type mismatchError struct{ what string }
