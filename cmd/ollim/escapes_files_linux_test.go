package main

// What stops an attempt.
const (
	landlock   = "Landlock: the file is not on the list"
	domain     = "Landlock: processes outside its domain cannot be traced or read"
	scope      = "Landlock: signals and abstract sockets outside its domain"
	filter     = "seccomp"
	supervisor = "the supervisor of connect: it connects only where the rules allow"
	noCaps     = "no capabilities, and none by execve"
	noSystem   = "the system's directories are not writable"
	closing    = "the end of the run kills what is in the domain"
	guard      = "ollim executes it as the agent's own command"
	nothing    = "" // ollim-security(7) says so
)

// escape is an attempt of a script to leave the seal. It has succeeded if $SECRET, or another text with the word sesame, is in what it
// printed or wrote, if $VICTIM is not what it was, if anything else is in $OUT, if something came to a socket outside, if process
// $PID has ended or changed, or if it printed ESCAPED.
type escape struct {
	name  string // begins with a program that it needs
	try   string
	stops string
	free  string // why it fails without a seal as well; "" if it must succeed there
}

const (
	asRoot    = "as root only"
	otherwise = "ollim or the machine itself refuses it" // or it would do harm
)

// fileEscapes read or change files that are not on the list.
func fileEscapes() []escape {
	return []escape{
		// programs that do more than their name says
		{"sqlite3: .shell", `sqlite3 :memory: ".shell cat $SECRET"`, landlock, ""},
		{"sqlite3: readfile", `sqlite3 :memory: "select cast(readfile('$SECRET') as text)"`, landlock, ""},
		{"sqlite3: writefile", `sqlite3 :memory: "select writefile('$VICTIM', 'x')"`, landlock, ""},
		{"sed: -e 1e", `echo x | sed -e "1e cat $SECRET"`, landlock, ""},
		{"sed: r", `echo x | sed -e "r $SECRET"`, landlock, ""},
		{"sed: w", `echo x | sed -e "w $VICTIM"`, landlock, ""},
		{"git: clone -u", `git init -q r; git clone -q --no-local -u "cat $SECRET >&2; git-upload-pack" ./r c`, landlock, ""},
		{"git: alias", `git -c alias.x="!cat $SECRET" x`, landlock, ""},
		{"git: diff --no-index", `git diff --no-index /dev/null $SECRET`, landlock, ""},
		{"git: fsmonitor", `git init -q r; cd r; git config core.fsmonitor "cat $SECRET >&2; false"; git status`, landlock, ""},
		{"git: config --file", `git config --file $VICTIM a.b c`, landlock, ""},
		{"sort: --files0-from", `sort --files0-from=$SECRET`, landlock, ""},
		{"sort: -o", `echo x | sort -o $VICTIM`, landlock, ""},
		{"curl: file globs", `curl -s "file://$OUT/{secret,none}"`, landlock, ""},
		{"curl: -o", `echo x >x; curl -s -o $VICTIM file://$PWD/x`, landlock, ""},
		{"curl: --config", `curl --config $SECRET`, landlock, ""},
		{"jq: imports", `jq -n -L $OUT 'import "data" as $d; $d'`, landlock, ""},
		{"jq: --rawfile", `jq -n --rawfile x $SECRET '$x'`, landlock, ""},
		{"sh: a rewritten script", `echo 'cat $SECRET' >helper; chmod +x helper; printf '#!/bin/sh\n./helper' >script; sh script`, landlock, ""},
		{"awk: getline", `awk "BEGIN { getline x < \"$SECRET\"; print x }"`, landlock, ""},
		{"awk: system", `awk "BEGIN { system(\"cat $SECRET\") }"`, landlock, ""},
		{"find: -exec", `find $OUT -name secret -exec cat {} +`, landlock, ""},
		{"find: -delete", `find $OUT -name victim -delete`, landlock, ""},
		{"xargs: -a", `xargs -a $SECRET echo`, landlock, ""},
		{"tar: a copy", `tar cf - $SECRET 2>/dev/null | tar xOf -`, landlock, ""},
		{"tar: --checkpoint-action", `tar cf x.tar --checkpoint=1 --checkpoint-action=exec="cat $SECRET" /dev/null`, landlock, ""},
		{"dd: of", `echo x | dd of=$VICTIM`, landlock, ""},
		{"make: a recipe", `printf 'all:\n\t@cat $(SECRET)\n' >Makefile; make -s`, landlock, ""},
		{"openssl: enc", `openssl enc -base64 -in $SECRET | openssl enc -d -base64`, landlock, ""},
		{"ssh: ProxyCommand", `ssh -o BatchMode=yes -o ProxyCommand="cp $SECRET $PWD/got" nowhere`, landlock, ""},
		{"grep: -r", `grep -r sesame $OUT`, landlock, ""},
		{"rg: --pre", `rg --pre cat sesame $SECRET`, landlock, ""},
		// shells and interpreters
		{"sh: cat", `cat $SECRET; echo x >$OUT/made`, landlock, ""},
		{"bash: a redirection", `bash -c 'echo "$(<$SECRET)"'`, landlock, ""},
		{"dash: a redirection", `dash -c 'read x <$SECRET; echo $x'`, landlock, ""},
		{"zsh: mapfile", `zsh -fc 'zmodload zsh/mapfile; print $mapfile[$SECRET]'`, landlock, ""},
		{"zsh: sysopen", `zsh -fc 'zmodload zsh/system; sysopen -w -o truncate -u 9 $VICTIM'`, landlock, ""},
		{"fish: read", `HOME=$PWD fish --no-config -c 'read x <$SECRET; echo $x'`, landlock, ""},
		{"busybox: sh", `busybox sh -c 'while read x; do echo $x; done <$SECRET; echo x >$VICTIM'`, landlock, ""},
		{"busybox: sed -i", `busybox sed -i s/i/x/ $VICTIM`, landlock, ""},
		{"perl: open", `perl -e 'open F, "<", $ENV{SECRET}; print <F>; open F, ">", $ENV{VICTIM}'`, landlock, ""},
		{"python3: open", `python3 -c 'import os; print(open(os.environ["SECRET"]).read())'`, landlock, ""},
		{"python3: a thread", `python3 -c 'import os, threading; t = threading.Thread(target=lambda: os.remove(os.environ["VICTIM"])); t.start(); t.join()'`, landlock, ""},
		{"node: fs", `node -e 'console.log(require("fs").readFileSync(process.env.SECRET, "utf8"))'`, landlock, ""},
		{"env: -i", `env -i /bin/cat $SECRET`, landlock, ""},
		{"cat: LD_PRELOAD", `PRELOADED=$SECRET LD_PRELOAD=$LIB /bin/cat /dev/null`, landlock, ""},
		{"sh: a C program", `$PROBE read $SECRET`, landlock, ""},
		{"sh: a C program that writes", `$PROBE write $VICTIM`, landlock, ""},
		{"sh: a program in memory", `$PROBE memfd $PROBE read $SECRET`, landlock, ""},
		{"sh: the dynamic linker", `cp $PROBE own; $(ls /lib64/ld-linux* /lib/ld-linux* 2>/dev/null | head -n1) ./own read $SECRET`, landlock, ""},
		{"sh: calls of 32-bit programs", `$PROBE old-read $SECRET`, filter, ""},
		{"sh: io_uring opens", `$PROBE uring-read $SECRET`, filter, ""},
		// other names for the file
		{"ln: a symbolic link", `ln -s $SECRET link; cat link`, landlock, ""},
		{"ln: a hard link", `ln $SECRET link; cat link`, landlock, ""},
		{"mv: out", `mv $SECRET moved; cat moved`, landlock, ""},
		{"mv: in", `echo x >new; mv new $OUT/new`, landlock, ""},
		{"mv: within", `mv $VICTIM $OUT/moved`, landlock, ""},
		{"sh: exchange", `echo x >new; $PROBE exchange new $VICTIM`, landlock, ""},
		{"sh: .. of a folder", `cat ../../state/../state/escapes/$ROW/secret`, landlock, ""},
		{"sh: its own root", `cat /proc/self/root$SECRET`, landlock, ""},
		{"sh: its own cwd", `cat /proc/self/cwd/../../state/escapes/$ROW/secret`, landlock, ""},
		{"sh: cd", `cd $OUT && cat secret`, landlock, ""},
		{"sh: a file handle", `$PROBE handle $SECRET`, filter + ", " + noCaps, asRoot},
		{"sh: truncate", `$PROBE truncate $VICTIM`, landlock, ""},
		{"sh: a file without a name", `$PROBE tmpfile $OUT && echo ESCAPED`, landlock, ""},
		{"rm: a file", `rm -f $VICTIM`, landlock, ""},
		{"mkdir: a directory", `mkdir $OUT/made`, landlock, ""},
		{"mkfifo: a pipe", `mkfifo $OUT/made`, landlock, ""},
		{"cp: over", `echo x >new; cp --remove-destination new $VICTIM; cp new $OUT/made`, landlock, ""},
		{"ls: a listing", `ls $HOME/.ssh | grep -q id_ && echo ESCAPED`, landlock, ""},
		{"mount: bind", `mkdir m; mount --bind $OUT m && cat m/secret; umount m`, filter + ", " + noCaps, asRoot},
		{"unshare: namespaces", `unshare -rm sh -c "mount -t tmpfs none /mnt && echo ESCAPED"`, filter, ""},
		{"sh: a mount of its own", `$PROBE remount && echo ESCAPED`, filter, ""},
		{"chroot: itself", `chroot / /bin/true && echo ESCAPED`, noCaps, asRoot},
		{"sh: a device", `$PROBE device dev && echo ESCAPED`, landlock + ", " + noCaps, asRoot},
		{"sh: the disk", `dd if=$(awk '$2=="/" {print $1}' /proc/mounts) bs=512 count=1 of=/dev/null && echo ESCAPED`, landlock, otherwise},
		// the owner's and ollim's files
		{"cat: the settings", `cat $DATA/config.yaml $DATA/tool-policy.yaml`, landlock, ""},
		{"cat: state and sessions", `cat $DATA/state/diary $DATA/sessions/diary`, landlock, ""},
		{"cat: a gate", `cat $DATA/gates/check`, landlock, ""},
		{"cat: the secrets", `cat $HOME/.config/ollim/secrets.env`, landlock, ""},
		{"cat: keys in the home", `cat $HOME/.ssh/id_ed25519`, landlock, ""},
		{"sh: the shell's settings", `echo "echo x" >>$HOME/.bashrc && echo ESCAPED`, landlock, ""},
		{"cat: temporary files of another run", `cat $OTHERS/ollim-other/secret`, landlock, ""},
		{"sh: temporary files beside", `echo x >$OTHERS/made-$ROW && echo ESCAPED`, landlock, ""},
		{"sh: a file of the data directory", `echo x >$DATA/made-$ROW && echo ESCAPED`, landlock, ""},
		{"sh: the program itself", `echo x >>$DATA/anything.sh && echo ESCAPED`, landlock, otherwise},
		{"sh: the system's directories", `for d in /etc /usr /var/spool /run /dev/shm; do echo x >$d/ollim-$$ && echo ESCAPED; rm -f $d/ollim-$$; done`, noSystem, ""},
		{"sh: settings of the kernel", `cat /proc/sys/vm/swappiness >/proc/sys/vm/swappiness && echo ESCAPED`, landlock, asRoot},
		{"crontab: a line", `echo "0 0 1 1 * true" | crontab - && echo ESCAPED`, noSystem + ", " + noCaps, otherwise},
	}
}
