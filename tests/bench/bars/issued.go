// What plans issue to their streams, read from the files of --save-plan, so that two plans can be compared.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
)

// issued is what a plan issues to its streams, and in which order.
type issued struct {
	Streams []struct {
		Ops []struct{ Op, Node string }
	}
	Order  []int
	Bodies []struct {
		Node string
		Body int
		Plan issued
	}
}

// planOf runs a pipeline once with such arguments and returns its plan, through a file of that name.
func (s *settings) planOf(ctx context.Context, file, saved string, args ...string) (*issued, error) {
	args = append([]string{file}, args...)
	if _, err := s.answer(ctx, &ran{}, append(args, "--iterations", "1", "--learn", "off", "--cache-dir", "off", "--save-plan", saved)...); err != nil {
		return nil, err
	}
	return readIssued(saved)
}

func readIssued(name string) (*issued, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	p := &issued{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}
