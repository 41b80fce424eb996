package api

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strconv"
)

// maxNonce is the size of a nonce in characters.
const maxNonce = 24

// Nonce returns the nonce of the n-th part of a message, the same one whenever it is asked.
func Nonce(id string, n int) string {
	sum := sha256.Sum256([]byte(id + " " + strconv.Itoa(n)))
	return base32.StdEncoding.EncodeToString(sum[:])[:maxNonce]
}

func randomNonce() string { return rand.Text()[:maxNonce] }
