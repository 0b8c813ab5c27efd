import { connection } from 'next/server';
import { Chat } from './chat';

export default async function Page() {
  // Read for every request, so that one build serves every environment.
  await connection();
  return <Chat server={process.env.QUARTERDECK_URL ?? 'http://localhost:8080'} />;
}
