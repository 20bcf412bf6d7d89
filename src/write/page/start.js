// What the browser runs first: unpacks the script (the element #program), which draws the profile
// (#profile). Both are base64 of gzip; the page's policy allows the script by its hash.

function decodeBase64(text) {
	if (Uint8Array.fromBase64)
		return Uint8Array.fromBase64(text);
	const binary = atob(text);
	const bytes = new Uint8Array(binary.length);
	for (let i = 0; i < binary.length; i++)
		bytes[i] = binary.charCodeAt(i);
	return bytes;
}

// Returns the bytes that the element holds, and removes the element.
async function unpack(id) {
	if (typeof DecompressionStream === 'undefined')
		throw new Error('this browser is too old for the graph (it lacks DecompressionStream)');
	const place = document.getElementById(id), bytes = decodeBase64(place.textContent.trim());
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
	const unpacked = new Uint8Array(await new Response(stream).arrayBuffer());
	place.remove();
	return unpacked;
}

// Leaves what can be read without a script, and says why there is no more.
function giveUp(error) {
	const tables = new DOMParser().parseFromString(document.querySelector('noscript').textContent, 'text/html');
	const told = document.createElement('p');
	told.textContent = `The profile cannot be shown: ${error.message}.`;
	told.className = 'error';
	told.setAttribute('role', 'alert');
	document.querySelector('main').replaceChildren(told, ...tables.body.children);
	console.error(error);
}

async function start() {
	try {
		const script = document.createElement('script');
		script.textContent = new TextDecoder().decode(await unpack('program'));
		document.body.append(script);
	} catch (error) {
		giveUp(error);
	}
}

start();
