// Package digest computes hashes of what a pipeline consists of: numbers and texts, each in its place.
package digest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Flag is a truth value as a number.
func Flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Digest hands the hash few large pieces: a call for each number would cost more than the hashing.
type Digest struct {
	hash   hash.Hash
	buffer []byte
}

// New starts a hash; the kind keeps hashes of different things apart.
func New(kind string) *Digest {
	h := &Digest{hash: sha256.New(), buffer: make([]byte, 0, 1<<15)}
	h.Text(kind)
	return h
}

// Sum ends the hash and returns it as a text.
func (h *Digest) Sum() string {
	h.flush()
	return "sha256:" + hex.EncodeToString(h.hash.Sum(nil))
}

// Numbers adds numbers.
func (h *Digest) Numbers(values ...int64) {
	for _, v := range values {
		h.buffer = binary.AppendVarint(h.buffer, v)
	}
	if len(h.buffer) > 1<<14 {
		h.flush()
	}
}

// Text adds a text, and how long it is.
func (h *Digest) Text(s string) {
	h.buffer = binary.AppendUvarint(h.buffer, uint64(len(s)))
	h.buffer = append(h.buffer, s...)
}

func (h *Digest) flush() {
	h.hash.Write(h.buffer)
	h.buffer = h.buffer[:0]
}
