package installer

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// markPrefix begins the first line of every unit file that we write.
const markPrefix = "# Written by ollim; hash "

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// isMarked reports whether a unit file is ours, and whether it is still as we wrote it. What is not ours is never touched.
func isMarked(text string) (ours, intact bool) {
	first, rest, _ := strings.Cut(text, "\n")
	hash, ours := strings.CutPrefix(first, markPrefix)
	return ours, ours && hash == digest(rest)
}

// clusterLimit is the longest name of a CronJob, whose jobs and pods get longer ones.
const clusterLimit = 52

// lowerName makes a name for a cluster, where names are lower case, from a prefix and an id. An id that is such a name already is kept; from
// any other a hash keeps it apart from its like.
func lowerName(prefix, id string) string {
	kept, changed := prefix+"job-", prefix+"id-"
	name := strings.Map(func(r rune) rune {
		if r == '.' || r == '_' {
			return '-'
		}
		return r
	}, strings.ToLower(id))
	if name == id && !strings.HasSuffix(id, "-") && len(kept+id) <= clusterLimit {
		return kept + id
	}
	hash := "-" + digest(id)[:8]
	return changed + strings.TrimRight(name[:min(len(name), clusterLimit-len(changed+hash))], "-") + hash
}
