// What the browser runs first: unpacks the script (the element #program), which draws the profile
// (#profile). Both are base64 of gzip; the page's policy allows the script by its hash. Where no script
// may run, the tables (#still) are what is seen. A browser saves the page as it stands then: nothing is
// taken away that it needs when it is opened again, and what the script added is cleared.

function decodeBase64(text) {
	if (Uint8Array.fromBase64)
		return Uint8Array.fromBase64(text);
	const binary = atob(text);
	const bytes = new Uint8Array(binary.length);
	for (let i = 0; i < binary.length; i++)
		bytes[i] = binary.charCodeAt(i);
	return bytes;
}

// Returns the bytes that the element holds.
async function unpack(id) {
	if (typeof DecompressionStream === 'undefined')
		throw new Error('this browser is too old for the graph (it lacks DecompressionStream)');
	const place = document.getElementById(id), bytes = decodeBase64(place.textContent.trim());
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Leaves what can be read without a script, and says why there is no more.
function giveUp(error) {
	const told = document.createElement('p');
	told.textContent = `The profile cannot be shown: ${error.message}.`;
	told.className = 'error';
	told.setAttribute('role', 'alert');
	document.querySelector('main').replaceChildren(told, ...document.getElementById('still').children);
	console.error(error);
}

async function start() {
	document.getElementById('still').hidden = true;
	document.getElementById('bar').hidden = document.querySelector('main').hidden = false;
	for (const id of ['kinds', 'views', 'table'])
		document.getElementById(id).replaceChildren();
	document.getElementById('menu')?.remove();
	document.getElementById('dialog').close();
	try {
		const script = document.createElement('script');
		script.textContent = new TextDecoder().decode(await unpack('program'));
		document.body.append(script);
		script.remove();
	} catch (error) {
		giveUp(error);
	}
}

start();
