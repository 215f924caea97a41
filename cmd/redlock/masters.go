package main

import "github.com/quorumlock/quorumlock/internal/cli"

// masters are the masters that an operator asks, each by itself or as a quorum.
type masters struct {
	cli.Masters
	believed bool // an operator who declared them new while a client let too few of them vote
}
