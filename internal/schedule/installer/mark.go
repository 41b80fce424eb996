package installer

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// markPrefix begins the first line of every unit file that we write.
const markPrefix = "# Written by ollim; hash "

// marked is a text with its mark in front.
func marked(text string) string { return markPrefix + digest(text) + "\n" + text }

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Marked reports whether a unit file is ours, and whether it is still as we wrote it. What is not ours is never touched.
func Marked(text string) (ours, intact bool) {
	first, rest, _ := strings.Cut(text, "\n")
	hash, ours := strings.CutPrefix(first, markPrefix)
	return ours, ours && hash == digest(rest)
}
