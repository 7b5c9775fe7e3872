// Frames: the messages between a rank and the store, with what they carry. Each is a length and JSON, with a limit on size and time.

package world

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	mostBytes     = 256 << 20 // of a frame of a rank that has proved the secret
	firstBytes    = 4 << 10   // of a frame before that
	firstTime     = 5 * time.Second
	silence       = time.Minute // without a word from the other side, it counts as lost
	beat          = time.Second
	protocol      = "dagrun ranks 3"
	defaultArrive = 60 * time.Second
)

var after = time.After

// frame is one message.
type frame struct {
	Kind     string          `json:"kind"`
	Rank     int             `json:"rank,omitempty"`
	Ranks    int             `json:"ranks,omitempty"`
	Nonce    string          `json:"nonce,omitempty"`
	Proof    string          `json:"proof,omitempty"`
	Session  string          `json:"session,omitempty"`
	Member   *Member         `json:"member,omitempty"`
	Members  []Member        `json:"members,omitempty"`
	Hash     string          `json:"hash,omitempty"`
	Outline  []string        `json:"outline,omitempty"`
	Decision json.RawMessage `json:"decision,omitempty"`
	Name     string          `json:"name,omitempty"`
	Cause    *RankError      `json:"cause,omitempty"`
	Text     string          `json:"text,omitempty"`
	All      []string        `json:"all,omitempty"` // by rank
	State    *State          `json:"state,omitempty"`
}

// link is one side of a connection that carries frames.
type link struct {
	conn  net.Conn
	write sync.Mutex
	heard atomic.Int64 // when a frame came last, in nanoseconds of the system's clock
}

// stopped is how long the other side must have said nothing, although it beats, to count as a process that is stopped.
var stopped = 5 * time.Second

func (l *link) isStopped() bool { return time.Since(time.Unix(0, l.heard.Load())) >= stopped }

func (l *link) send(f frame) error {
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	l.write.Lock()
	defer l.write.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(silence)); err != nil {
		return err
	}
	_, err = l.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...))
	return err
}

var errGarbage = errors.New("what was received is not the protocol of dagrun's ranks")

func (l *link) receive(most int, within time.Duration) (frame, error) {
	var f frame
	if err := l.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return f, err
	}
	var head [4]byte
	if _, err := io.ReadFull(l.conn, head[:]); err != nil {
		return f, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if int64(size) > int64(most) {
		return f, fmt.Errorf("%w: a message of %d bytes", errGarbage, size)
	}
	// The memory grows as bytes arrive, not by what the head claims.
	data, err := io.ReadAll(io.LimitReader(l.conn, int64(size)))
	if err == nil && len(data) < int(size) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, errGarbage
	}
	l.heard.Store(time.Now().UnixNano())
	return f, nil
}

func nonce() string {
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// prove is a text that only who knows the secret can make for these parts.
func prove(secret string, parts ...string) string {
	h := hmac.New(sha256.New, []byte(secret))
	for _, p := range append([]string{protocol}, parts...) {
		_ = binary.Write(h, binary.BigEndian, uint32(len(p)))
		_, _ = io.WriteString(h, p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func proved(got, secret string, parts ...string) bool {
	return hmac.Equal([]byte(got), []byte(prove(secret, parts...)))
}

var errSecret = errors.New("it has another DAGRUN_SECRET")

// challenge is the serving side's part of a handshake: each side proves that it knows the secret. It returns the rank that came. Ranks knock with
// their first bytes, so that a connection that floods the port is told from one that does not without waiting for an answer; knocked is called then.
func (l *link) challenge(secret, what string, knocked func()) (rank int, err error) {
	own := nonce()
	if err := l.send(frame{Kind: protocol, Nonce: own}); err != nil {
		return -1, err
	}
	f, err := l.receive(firstBytes, firstTime)
	if err != nil {
		return -1, err
	}
	if f.Kind != protocol {
		return -1, errGarbage
	}
	if !proved(f.Proof, secret, "knock", what, f.Nonce, fmt.Sprint(f.Rank)) {
		_ = l.send(frame{Kind: "refused", Text: "secret"})
		return f.Rank, errSecret
	}
	knocked()
	f, err = l.receive(firstBytes, firstTime)
	if err != nil {
		return -1, err
	}
	if f.Kind != protocol {
		return -1, errGarbage
	}
	if !proved(f.Proof, secret, what, own, f.Nonce, fmt.Sprint(f.Rank)) {
		_ = l.send(frame{Kind: "refused", Text: "secret"})
		return f.Rank, errSecret
	}
	return f.Rank, l.send(frame{Kind: "welcome", Proof: prove(secret, what, f.Nonce, own)})
}

// answer is the other side's part.
func (l *link) answer(secret, what string, rank int) error {
	knock := nonce()
	if err := l.send(frame{Kind: protocol, Rank: rank, Nonce: knock, Proof: prove(secret, "knock", what, knock, fmt.Sprint(rank))}); err != nil {
		return err
	}
	f, err := l.receive(firstBytes, firstTime)
	if err != nil {
		return err
	}
	if f.Kind != protocol {
		return errGarbage
	}
	own := nonce()
	if err := l.send(frame{Kind: protocol, Rank: rank, Nonce: own, Proof: prove(secret, what, f.Nonce, own, fmt.Sprint(rank))}); err != nil {
		return err
	}
	w, err := l.receive(firstBytes, firstTime)
	switch {
	case err != nil:
		return err
	case w.Kind == "refused":
		return errSecret
	case w.Kind != "welcome" || !proved(w.Proof, secret, what, own, f.Nonce):
		return errSecret
	}
	return nil
}

// State is what a rank is doing.
type State struct {
	Node    string  `json:"node,omitempty"`    // the communication that it is in, or ""
	For     []int32 `json:"for,omitempty"`     // the ranks whose messages are not complete there
	Last    string  `json:"last,omitempty"`    // the communication before
	Barrier string  `json:"barrier,omitempty"` // where it waits for all others, after its last communication
	Text    string  `json:"text,omitempty"`    // how far it has come: "after 3 of 10 replays"
	// Mutual says that For is who takes part, because the device does not tell whose messages are missing: of two ranks that are in each
	// other's list, both have come.
	Mutual bool `json:"mutual,omitempty"`
}

// Member is a rank as the others know it.
type Member struct {
	Rank      int    `json:"rank"`
	Host      string `json:"host"`
	Pid       int    `json:"pid"`
	LocalRank int    `json:"local_rank"`
	Device    string `json:"device"` // its UUID, "" on the CPU
	Listen    string `json:"listen"` // where it takes connections of other ranks
}

// RankError is a failure of a rank, as the others report it.
type RankError struct {
	Rank, Ranks int
	Host        string
	What        string // "did not arrive within 60 s"
	TimedOut    bool   // a rank gave up waiting for it
}
