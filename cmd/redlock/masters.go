package main

import "github.com/quorumlock/quorumlock/internal/cli"

// masters are the masters that an operator asks, each by itself or as a quorum.
type masters struct{ cli.Masters }
