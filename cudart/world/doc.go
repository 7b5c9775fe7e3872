// Package world connects the ranks that run one file: it finds out which rank this process is, brings all of them together at the store
// of rank 0, agrees on one decision, and does the communication of the CPU device over TCP.
package world
