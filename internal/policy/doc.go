// Package policy decides which tools an agent may use: it parses tool patterns ("Read(./**.md)", "Bash(ollim tasks *)",
// "WebFetch", "mcp__ollim__ping_user"), judges whether a file may contain a pattern, and decides each use at dispatch. It
// starts nothing, writes nothing and reads no file contents; it uses the file system only to resolve paths.
//
// Parse checks whether a text is a pattern and refuses what no policy may contain. Judge reports whether a job or policy file
// may contain a pattern. Policy.Decide reports whether one use is allowed. Decide does not trust that anybody judged: what is
// refused for its shape, for an owner's verb or for a protected place is refused whatever the patterns say. What is not understood
// is refused: unknown tools and fields, repeated keys, text that two readers could read differently.
//
// Bash. A command is one simple command of literal words, see package shell, so that every shell, and an engine that has none, splits
// it alike. The words match the pattern's one by one: * within a word matches any text, a * alone one word, a * alone at the end any
// number of further words, also none. The command's name stands bare, in the command and in the pattern, and matches literally.
//
// Where the kernel holds what a program reaches (Policy.Sealed), the words are all that is looked at, except of ollim itself, whose
// commands are executed outside, and of programs whose work a service does. Elsewhere only scripts and the programs of usageOf run,
// and a pattern for others is not in force (Pattern.Unsealed). There the words are also looked at as paths (whole, as values of
// options, and piece by piece): none may lead into a protected place, contain one, or climb by "..". What an approved program can do
// with its arguments, its owner gave.
//
// ollim. Policy.Ollim says which of its commands an agent may use; it may not use others, nor --data-dir, --config or --engine. No
// file may hold a pattern that matches one of OwnerVerbs. Only -q, -v and --log-format may precede the command, see Verbs.Access.
//
// Paths. A path is relative to the first root. It is resolved through symbolic links (its deepest existing directory, when it does
// not exist) and what it resolves to counts: it must lie in a root (for writing: the innermost root around it is writable),
// outside every protected place (compared without case, and by file identity), and match a pattern. In a
// pattern * matches within one name, ** any number of directories: "./**.md" is every .md file at any depth, "notes/**" every
// file below notes. A bare Read, Glob or Grep matches the roots; writing tools always need a scope that names something,
// and their wildcards do not match names that begin with a dot. Absolute patterns serve the other roots.
//
// Glob and Grep. A search is allowed if a pattern of that tool covers all that it could find, decided from the text of path and glob
// alone. A glob without a slash searches at every depth, as ripgrep's do. It is assumed that the tools do not follow links inside the
// searched directory, as ripgrep does not, and leave out what is protected below the working directory: the native ones do, and
// Claude Code does for paths that its settings deny to Read. Elsewhere a search may not begin above a protected place.
//
// Not covered. Between a decision and the use, a link may be swapped: Decide is a check, not a boundary. The native engine
// opens files through os.Root; for others a writable root is only as good as the set of processes that write there. Hard
// links into a protected directory are not seen. WebFetch takes host names only, no addresses and none of
// the names of local networks; what a name resolves to is the fetcher's to check.
package policy
