//go:build !linux

// Package screen is for Linux.
package screen
