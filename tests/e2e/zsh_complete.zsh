#!/usr/bin/env zsh
# What a user's zsh makes of lines when the tab key is pressed: for each line read, one with all the words by which it
# goes on, sorted.
#	zsh -f zsh_complete.zsh COMPLETIONS WORK
# COMPLETIONS is the folder with _mrcctl, WORK one for what zsh keeps. The keys go to a zsh at a terminal of its own,
# and each further tab takes the next match, so that what is answered has stood on the line.

cat >$2/zshrc <<-RC
	PROMPT= fpath=(${(q)1} \$fpath)
	setopt menu_complete no_beep no_auto_list
	autoload -Uz compinit && compinit -u -d ${(q)2}/zcompdump
	bindkey -e
	# ^G answers how many matches the last completion had, and what stands on the line.
	count() { matches=\$compstate[nmatches] }
	answer() {
		print -r -- "<<\${matches:-0} \$BUFFER>>"
		matches=0 comppostfuncs=(count)
	}
	zle -N answer
	zle -N zle-line-init answer
	bindkey '^G' answer
RC
zmodload zsh/zpty && zpty shell zsh -f -i && zpty -w shell "source ${(q)2}/zshrc" || exit

await() {
	local answer=
	until [[ $answer == *'<<'*'>>'* ]]; do zpty -r shell answer || exit 1; done
	answer=${${answer##*<<}%%>>*}
	matches=${answer%% *} buffer=${answer#* }
}
press() { # KEYS
	zpty -w -n shell $1$'\C-g'
	await
}

await
while IFS= read -r line; do
	words=()
	press $'\C-u'$line$'\t'
	for ((left = matches; left > 0; left--)); do
		words+=(${${buffer% }##* })
		((left == 1)) || press $'\t'
	done
	print -r -- ${(o)words}
done
